package driver

import (
	"github.com/volley-engine/volley/abss"
	"github.com/volley-engine/volley/internal/plan"
)

// Coming returns what is known of a pass before it begins.
func (j *Job) Coming(req *plan.StepRequest) abss.Coming {
	p := j.packs[req.Pack]
	c := abss.Coming{Executors: len(p.sched.Alive()), Node: req.Node, Step: req.Train, Ratio: req.Ratio,
		Sample: req.Train && req.Sample && partial(req.Batch) && j.cfg.Sync.Cuttable(p.info.Rows, req.Batch)}
	c.Fastest, c.Slowest = p.sched.Spread()
	rows := float64(p.info.rows())
	if req.Train {
		rows *= j.batch(req)
	}
	c.Rows = int64(rows)
	perRow, known := p.perRow[req.Node]
	if !known {
		perRow = p.perRow[anyNode]
	}
	c.Takes = plan.Time(rows * perRow)
	return c
}
