package linear

import (
	"github.com/volley-engine/volley/mllib/internal/fold"
	"github.com/volley-engine/volley/rdd"
)

// classRows are rows of a margin for each class.
type classRows struct {
	prob  *problem
	rest  bool
	k, d  int
	param softmaxParam
	class map[float64]int
	work  softmaxWork
	sums  fold.ClassSums
	of    []float64 // a class's part of the sums
}

func newClassRows(p *boundedParam, rest bool) *classRows {
	k, d := len(p.Labels), len(p.Scale)
	c := &classRows{prob: p.problem(), rest: rest, k: k, d: d, class: map[float64]int{}, of: make([]float64, d),
		param: softmaxParam{K: k, D: d, Labels: p.Labels},
		sums:  fold.ClassSums{Coef: make([]float64, k), Sum: make([]float64, k*d)}}
	if len(p.Counts) > 0 {
		c.param.Counts = p.Counts
	}
	c.class = c.param.classes()
	return c
}

func (c *classRows) margins() int { return c.k }

// blocks calls do for the rows of a batch, some at a time, with their part of some numbers.
func (c *classRows) blocks(coef []float64, b *rdd.Batch, do func(coef []float64, rows []int32)) {
	for from := 0; from < len(b.Rows); from += fold.BlockRows {
		to := min(from+fold.BlockRows, len(b.Rows))
		do(coef[from*c.k:to*c.k], b.Rows[from:to])
	}
}

func (c *classRows) derive(coef, variables []float64, b *rdd.Batch) {
	c.prob.classesParam(&c.param, variables)
	var lost fold.ClassSums
	c.blocks(coef, b, func(coef []float64, rows []int32) {
		c.work.margins(&c.param, b, rows)
		c.work.derive(&lost, &c.param, b, rows, c.class, c.rest)
		copy(coef, c.work.z)
	})
}

func (c *classRows) slopes(out, coef []float64, b *rdd.Batch, weight float64) {
	clear(c.sums.Sum)
	clear(c.sums.Coef)
	c.blocks(coef, b, func(coef []float64, rows []int32) {
		c.work.take(&c.param, b, rows)
		c.work.z = append(c.work.z[:0], coef...)
		c.work.accumulate(c.sums.Sum, &c.param, b, rows)
		for i, v := range coef {
			c.sums.Coef[i%c.k] += v
		}
	})
	n := c.prob.size()
	for k := range c.k {
		for j := range c.of {
			c.of[j] = c.sums.Sum[j*c.k+k]
		}
		c.prob.slopes(out[k*n:(k+1)*n], c.of, c.sums.Coef[k], weight)
	}
}
