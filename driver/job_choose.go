package driver

import (
	"math"

	"github.com/volley-engine/volley/abss"
	"github.com/volley-engine/volley/internal/plan"
)

// Coming returns what is known of a pass before it begins.
func (j *Job) Coming(req *plan.StepRequest) abss.Coming {
	p := j.packs[req.Pack]
	c := abss.Coming{Executors: len(p.sched.Alive()), Step: req.Train, Ratio: req.Ratio,
		Sample: req.Train && partial(req.Batch) && j.cuttable(p, req.Batch)}
	c.Fastest, c.Slowest = p.sched.Spread()
	rows := float64(p.info.rows())
	if req.Train {
		rows *= j.batch(req)
	}
	c.Takes = plan.Time(rows * p.perRow)
	return c
}

// cuttable reports whether a sample of a share of each split can be cut at the job's ratio: the least of each split
// that a step must have is not as much as that.
func (j *Job) cuttable(p *pack, share float64) bool {
	cfg := j.cfg.Sync.EnsureDefaults()
	var least, all float64
	for _, n := range p.info.Rows {
		sample := math.Ceil(share * float64(n))
		all += sample
		least += min(sample, max(float64(cfg.MinRows), math.Trunc(max(0, cfg.MinShare)*sample)))
	}
	return least < float64(cfg.Ratio*all)
}
