package host

import (
	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/rdd"
)

// begin writes the header, and the lines that have waited for it.
func (r *record) begin(h *driver.LogHeader) {
	r.actions.Lock()
	defer r.actions.Unlock()
	r.beginHeld(h)
}

// beginHeld does so; r.actions is held.
func (r *record) beginHeld(h *driver.LogHeader) {
	r.begun = true
	r.log.Write(h)
	for _, line := range r.early {
		r.log.Write(line)
	}
	r.early = nil
}

// plan writes what a plan has that is not in the log yet, before an action runs of it.
func (r *record) plan(g *rdd.Graph) {
	r.actions.Lock()
	defer r.actions.Unlock()
	if !r.begun && !g.MayPack() { // there is no first pack for the header to describe
		r.beginHeld(&r.header)
	}
	if size := g.Operations(); size > r.nodes {
		r.put(planLine(g.Explained().Nodes[r.nodes:size]))
		r.nodes = size
	}
}

// action writes the line of an action that has ended.
func (r *record) action(line *driver.LogAction) {
	r.actions.Lock()
	defer r.actions.Unlock()
	r.put(line)
}

func planLine(nodes []rdd.ExplainedNode) *driver.LogPlan {
	l := &driver.LogPlan{Event: "plan"}
	for _, n := range nodes {
		l.Nodes = append(l.Nodes, driver.LogNode{Node: n.ID, Stage: n.Stage, Kind: n.Kind, Detail: n.Detail,
			Label: n.Label, Inputs: n.Inputs})
	}
	return l
}

// shuffle writes the line of what map tasks have made.
func (r *record) shuffle(line *driver.LogShuffle) {
	r.actions.Lock()
	defer r.actions.Unlock()
	r.put(line)
}

// put writes a line, or keeps it until there is a header; r.actions is held.
func (r *record) put(line any) {
	switch {
	case r.log == nil:
	case r.begun:
		r.log.Write(line)
	default:
		r.early = append(r.early, line)
	}
}
