package daemon

import (
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// voting keeps a driver from voting that has lost its journal: it may have confirmed entries that it does not have any
// more, and would elect a driver that lacks them.
type voting struct {
	*raft.NetworkTransport
	votes *atomic.Bool
	calls chan raft.RPC
}

func newVoting(t *raft.NetworkTransport, votes *atomic.Bool) *voting {
	v := &voting{NetworkTransport: t, votes: votes, calls: make(chan raft.RPC)}
	go v.pass()
	return v
}

// Consumer returns the calls of other drivers.
func (v *voting) Consumer() <-chan raft.RPC { return v.calls }

// pass answers requests for a vote that this driver may not give, and passes all other calls on.
func (v *voting) pass() {
	for call := range v.NetworkTransport.Consumer() {
		if v.votes.Load() {
			v.calls <- call
			continue
		}
		switch c := call.Command.(type) {
		case *raft.RequestVoteRequest:
			call.Respond(&raft.RequestVoteResponse{RPCHeader: c.RPCHeader, Term: c.Term}, nil)
		case *raft.RequestPreVoteRequest:
			call.Respond(&raft.RequestPreVoteResponse{RPCHeader: c.RPCHeader, Term: c.Term}, nil)
		default:
			v.calls <- call
		}
	}
}
