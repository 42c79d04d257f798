package driver

import (
	"github.com/volley-engine/volley/abss"
	"github.com/volley-engine/volley/internal/plan"
)

// Coming returns what is known of a pass before it begins.
func (j *Job) Coming(req *plan.StepRequest) abss.Coming {
	p := j.packs[req.Pack]
	c := abss.Coming{Step: req.Train, Sample: req.Train && partial(req.Batch), Ratio: req.Ratio}
	c.Fastest, c.Slowest = p.sched.Spread()
	rows := float64(p.info.rows())
	if req.Train {
		rows *= j.batch(req)
	}
	c.Takes = plan.Time(rows * p.perRow)
	return c
}
