package mlp

import (
	"fmt"
	"sync"
	"time"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/fold"
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/mllib/internal/parameters"
	"github.com/volley-engine/volley/mllib/internal/solver"
	"github.com/volley-engine/volley/mllib/internal/train"
	"github.com/volley-engine/volley/rdd"
)

// Activation is what a hidden layer makes of its sums.
type Activation string

// The activations.
const (
	ReLU    Activation = "relu"
	Sigmoid Activation = "sigmoid"
	Tanh    Activation = "tanh"
)

// ParseActivation returns the activation of a name.
func ParseActivation(name string) (Activation, error) {
	switch a := Activation(name); a {
	case ReLU, Sigmoid, Tanh:
		return a, nil
	}
	return "", fmt.Errorf("%q is not one of relu, sigmoid, tanh", name)
}

// Config configures the training of a fully connected network. Objective: mean
// log-loss of the softmax of the last layer, or, of a Regression, half the mean
// squared error, plus (Reg/2)·‖W‖² over all weights but the intercepts.
type Config struct {
	Data          []string
	Input         rdd.Input
	Splits        int
	Random        bool
	Seed          uint64
	Float32       bool
	Patience      int   // steps without a lower loss on the rows that Input.Fold holds out to stop by
	Hidden        []int // sizes of the hidden layers
	Activation    Activation
	Regression    bool
	Reg           float64
	Solver        solver.Name // Adam, or Constant with Momentum
	Batches       bool        `json:",omitempty"` // steps are of some rows, about as many as the data allow and wants
	Passes        bool        `json:",omitempty"` // the number of steps is chosen likewise, in place of MaxIterations
	StepSize      float64     // 0: 0.001 (adam with batches), 0.003 (adam) or 0.1
	Momentum      float64
	MaxIterations int
	Tol           float64
	Target        *float64 `json:",omitempty"`
	MaxTime       time.Duration
	Init          *Beginning          `json:",omitempty"` // model to begin with
	Bounded       *parameters.Bounded `json:",omitempty"` // workers on tables train; nil: steps do
}

// Check refuses configurations that no data could make right.
func (c *Config) Check() error {
	bad := func(flag, format string, args ...any) error {
		return fault.Newf(fault.Usage, "mlp", flag, format, args...)
	}
	for _, n := range c.Hidden {
		if n < 1 || n > 1<<20 {
			return bad("--layers", "%d is not a number of units", n)
		}
	}
	if c.Init != nil {
		if why := c.Init.differs(c); why != "" {
			return bad("--init", "%s", why)
		}
	}
	switch {
	case c.Solver != solver.Adam && c.Solver != solver.Constant:
		return bad("--solver", "%q is not one of adam, constant", c.Solver)
	case c.Momentum < 0 || c.Momentum >= 1:
		return bad("--momentum", "%v does not lie in [0, 1)", c.Momentum)
	case c.Reg < 0:
		return bad("--reg", "%v is below 0", c.Reg)
	}
	return nil
}

// solver returns the one to train by: Constant has momentum.
func (c *Config) solver() solver.Solver {
	if c.Solver == solver.Constant {
		return solver.WithMomentum(c.Momentum)
	}
	return solver.Of(c.Solver).New()
}

// network is a fully connected network: its layers' sizes, the input's first, and
// its numbers: of each layer the weights, a row for each input, and the intercepts.
type network struct {
	Sizes  []int
	V      []float64
	Labels []float64 // of the classes, as stored; none of a regression

	Mean, Unit        []float64 // of features, as the first layer sees them; nil as they are
	Center, Deviation float64   // of labels that are numbers; a deviation of 0 is as they are
}

// numbers returns how many a network of some sizes has.
func numbers(sizes []int) (n int) {
	for l := 1; l < len(sizes); l++ {
		n += (sizes[l-1] + 1) * sizes[l]
	}
	return n
}

// layer l's weights and intercepts, among as many numbers as the network has.
func (n *network) layer(v []float64, l int) (w, b []float64) {
	at := numbers(n.Sizes[:l])
	in, out := n.Sizes[l-1], n.Sizes[l]
	return v[at : at+in*out], v[at+in*out : at+(in+1)*out]
}

// MarshalBinary lays the network out as floats.
func (n network) MarshalBinary() ([]byte, error) {
	head := []float64{float64(len(n.Sizes)), float64(len(n.Labels)), float64(len(n.Mean)), n.Center, n.Deviation}
	for _, s := range n.Sizes {
		head = append(head, float64(s))
	}
	return num.PutFloats(make([]byte, 0, 8*(len(n.V)+len(n.Labels)+len(head))), head, n.Labels, n.Mean, n.Unit,
		n.V), nil
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (n *network) UnmarshalBinary(raw []byte) error {
	v, err := num.GetFloats(raw, 5)
	if err != nil {
		return err
	}
	layers, labels, d := int(v[0]), int(v[1]), int(v[2])
	n.Center, n.Deviation = v[3], v[4]
	if v = v[5:]; layers < 2 || labels < 0 || d < 0 || layers+labels+2*d > len(v) {
		return num.ErrCutShort
	}
	n.Sizes = nil
	for _, s := range v[:layers] {
		n.Sizes = append(n.Sizes, int(s))
	}
	n.Labels, v = v[layers:layers+labels], v[layers+labels:]
	if n.Mean, n.Unit = nil, nil; d > 0 {
		n.Mean, n.Unit = v[:d], v[d:2*d]
	}
	n.V = v[2*d:]
	if len(n.V) != numbers(n.Sizes) {
		return num.ErrCutShort
	}
	return nil
}

// netFold folds rows into loss and derivatives of a network. It is used by several
// goroutines.
type netFold struct {
	act  Activation
	pool sync.Pool // of *netWork
}

// netWork is what a netFold keeps from one batch to the next: of each layer what
// comes out of it for a block of rows, and the loss's derivatives by its sums.
type netWork struct {
	products   kernel.Product
	out, delta [][]float64
}

// aggregator folds rows into their loss, and, if that is wanted, its derivatives by
// the network's numbers.
func (f *netFold) aggregator(derivatives bool) rdd.Aggregator[network, rdd.Point, fold.ClassSums] {
	return rdd.Aggregator[network, rdd.Point, fold.ClassSums]{
		Zero: func(n network) fold.ClassSums {
			if !derivatives {
				return fold.ClassSums{}
			}
			return fold.ClassSums{Sum: make([]float64, len(n.V))}
		},
		AddBatch: f.add,
		Merge:    fold.MergeClasses,
		Scale:    fold.ScaleClasses,
		Close:    func(s fold.ClassSums, _ network, rows float64) fold.ClassSums { return s.Close(rows) },
		Weighted: true,
	}
}

func (f *netFold) add(s fold.ClassSums, n network, b *rdd.Batch) fold.ClassSums {
	w, _ := f.pool.Get().(*netWork)
	if w == nil {
		w = &netWork{}
	}
	defer f.pool.Put(w)
	w.fit(n.Sizes)
	class := map[float64]int{}
	for k, l := range n.Labels {
		class[l] = k
	}
	last := len(n.Sizes) - 1
	for from := 0; from < len(b.Rows); from += fold.BlockRows {
		rows := b.Rows[from:min(from+fold.BlockRows, len(b.Rows))]
		w.load(n.Sizes[0], b, rows)
		if n.Mean != nil {
			for i := range rows {
				to := w.out[0][i*n.Sizes[0] : (i+1)*n.Sizes[0]]
				for j, u := range n.Unit {
					to[j] = float64((to[j] - n.Mean[j]) * u)
				}
			}
		}
		f.forward(w, &n, len(rows))
		for i, r := range rows {
			z := w.out[last][i*n.Sizes[last] : (i+1)*n.Sizes[last]]
			if len(n.Labels) == 0 {
				s.TakeNumber(z, n.target(b.Labels[r]), b.WeightOf(r))
			} else if k, known := class[b.Labels[r]]; known {
				s.Take(z, k, b.WeightOf(r))
			} else {
				s.Take(z, -1, 0)
			}
		}
		if s.Sum != nil {
			f.backward(w, &n, s.Sum, len(rows))
		}
	}
	return s
}

// target returns a label as the last layer is to give it.
func (n *network) target(y float64) float64 {
	if n.Deviation == 0 {
		return y
	}
	return (y - n.Center) / n.Deviation
}

func (w *netWork) fit(sizes []int) {
	if len(w.out) != len(sizes) {
		w.out, w.delta = make([][]float64, len(sizes)), make([][]float64, len(sizes))
	}
	for l, n := range sizes {
		if cap(w.out[l]) < fold.BlockRows*n {
			w.out[l], w.delta[l] = make([]float64, fold.BlockRows*n), make([]float64, fold.BlockRows*n)
		}
		w.out[l], w.delta[l] = w.out[l][:fold.BlockRows*n], w.delta[l][:fold.BlockRows*n]
	}
}

// load puts a block of rows where the first layer reads them.
func (w *netWork) load(d int, b *rdd.Batch, rows []int32) {
	for i, r := range rows {
		to := w.out[0][i*d : (i+1)*d]
		if b.Dense() {
			for j := range to {
				to[j] = fold.ValueAt(b, int(r)*d+j)
			}
			continue
		}
		clear(to)
		for at := b.Offsets[r]; at < b.Offsets[r+1]; at++ {
			to[b.Indices[at]] += fold.ValueAt(b, int(at))
		}
	}
}

// forward computes what comes out of each layer for n rows; of the last layer the
// sums themselves.
func (f *netFold) forward(w *netWork, net *network, n int) {
	for l := 1; l < len(net.Sizes); l++ {
		in, out := net.Sizes[l-1], net.Sizes[l]
		weights, bias := net.layer(net.V, l)
		z := w.out[l][:n*out]
		for i := range n {
			copy(z[i*out:(i+1)*out], bias)
		}
		w.products.Add(kernel.RowMajor(z, n, out), kernel.RowMajor(w.out[l-1][:n*in], n, in),
			kernel.RowMajor(weights, in, out))
		if l < len(net.Sizes)-1 {
			f.activate(z)
		}
	}
}

func (f *netFold) activate(z []float64) {
	for i, v := range z {
		switch f.act {
		case Sigmoid:
			z[i] = kernel.Sigmoid(v)
		case Tanh:
			z[i] = float64(2*kernel.Sigmoid(2*v)) - 1
		default:
			z[i] = max(0, v)
		}
	}
}

// slope returns the activation's derivative where it has come to y.
func (f *netFold) slope(y float64) float64 {
	switch f.act {
	case Sigmoid:
		return float64(y * (1 - y))
	case Tanh:
		return 1 - float64(y*y)
	}
	if y > 0 {
		return 1
	}
	return 0
}

// backward adds the derivatives of n rows, whose derivatives by the last layer's
// sums stand in its place, to sum.
func (f *netFold) backward(w *netWork, net *network, sum []float64, n int) {
	last := len(net.Sizes) - 1
	delta := w.out[last][:n*net.Sizes[last]]
	for l := last; l > 0; l-- {
		in, out := net.Sizes[l-1], net.Sizes[l]
		below := kernel.RowMajor(w.out[l-1][:n*in], n, in)
		d := kernel.RowMajor(delta, n, out)
		weights, bias := net.layer(sum, l)
		w.products.Add(kernel.RowMajor(weights, in, out), below.T(), d)
		for i := range n {
			kernel.Add(delta[i*out:(i+1)*out], bias)
		}
		if l == 1 {
			return
		}
		own, _ := net.layer(net.V, l)
		next := w.delta[l-1][:n*in]
		clear(next)
		w.products.Add(kernel.RowMajor(next, n, in), d, kernel.RowMajor(own, in, out).T())
		for i, y := range below.Data {
			next[i] = float64(next[i] * f.slope(y))
		}
		delta = next
	}
}

// Plan is the plan of a network.
type Plan struct {
	Rows     rdd.Packed[rdd.Point]
	Gradient rdd.Step[network, fold.ClassSums]
	Loss     rdd.Step[network, fold.ClassSums]
	Spread   rdd.Step[fold.MomentsParam, spread]
	Sample   rdd.Action[[]rdd.Point]
	Held     rdd.Packed[rdd.Point] // rows held out to stop by, if any
	HeldLoss rdd.Step[network, fold.ClassSums]
	bounded  *boundedPlan // workers on tables; nil where steps train
}

// Build declares the plan.
func Build(g *rdd.Graph, c Config) Plan {
	pack := train.Packing{Input: c.Input, Data: c.Data, Splits: c.Splits, Seed: c.Seed, Random: c.Random,
		Float32: c.Float32}
	rows := pack.Rows(g)
	f := &netFold{act: c.Activation}
	p := Plan{Rows: rows, Gradient: rdd.Aggregate(rows, f.aggregator(true), rdd.Aggressive(0)),
		Loss:   rdd.Aggregate(rows, f.aggregator(false)),
		Spread: rdd.Aggregate(rows, spreadAggregator()), Sample: rdd.Prefix(rows, 1)}
	if c.Bounded != nil {
		p.bounded = declareBounded(g, rows, f, &c)
	}
	if held, any := pack.HeldOut(g); any {
		p.Held, p.HeldLoss = held, rdd.Aggregate(held, f.aggregator(false))
	}
	return p
}
