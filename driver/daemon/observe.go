package daemon

import (
	"github.com/hashicorp/raft"
)

// observe logs which driver leads, and which do not answer, once for each change.
func (r *Replica) observe() {
	seen := make(chan raft.Observation, 64)
	o := raft.NewObserver(seen, false, func(o *raft.Observation) bool {
		switch o.Data.(type) {
		case raft.LeaderObservation, raft.FailedHeartbeatObservation, raft.ResumedHeartbeatObservation:
			return r.self.Address != ""
		}
		return false
	})
	r.journal.raft.RegisterObserver(o)
	defer r.journal.raft.DeregisterObserver(o)
	silent, leader := map[raft.ServerID]bool{}, raft.ServerID("")
	for {
		select {
		case ob := <-seen:
			switch d := ob.Data.(type) {
			case raft.LeaderObservation:
				if d.LeaderID != leader && d.LeaderID != "" {
					r.log.Info("a driver was elected", "driver", d.LeaderID, "address", d.LeaderAddr)
				}
				leader = d.LeaderID
			case raft.FailedHeartbeatObservation:
				if !silent[d.PeerID] {
					r.log.Warn("a driver does not answer", "driver", d.PeerID, "last contact", d.LastContact)
				}
				silent[d.PeerID] = true
			case raft.ResumedHeartbeatObservation:
				delete(silent, d.PeerID)
				r.log.Info("a driver answers again", "driver", d.PeerID)
			}
		case <-r.ctx.Done():
			return
		}
	}
}
