package daemon

import (
	"cmp"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/version"
)

// While a cluster is upgraded, some of its drivers are of the version before: what those do not read must not be in the
// journal. Its level is the version that all drivers speak; the driver that leads raises it once all have said so.

// levelAgain is the time between two looks at whether all drivers speak a later version.
const levelAgain = 500 * time.Millisecond

// raiseLevel raises the journal's level to this driver's version as soon as all drivers speak it.
func (d *Daemon) raiseLevel() {
	next := time.NewTimer(0)
	defer next.Stop()
	for !version.AtLeast(d.journal.fsm.level(), version.Newest) {
		select {
		case <-next.C:
		case <-d.ctx.Done():
			return
		}
		older, err := d.oldest()
		switch {
		case err != nil:
			d.log.Debug("the journal stays of the version before", "why", err)
		case version.AtLeast(older, version.Newest):
			r := Record{Kind: LevelRaised, Level: version.Newest, At: time.Now().UnixNano()}
			if err := d.journal.Append(d.ctx, r); err == nil {
				d.log.Info("all drivers speak a later version of the protocol", "version", version.Newest)
			}
		default:
			d.log.Debug("the journal stays of the version before", "why", "a driver speaks no more than "+older)
		}
		next.Reset(levelAgain)
	}
}

// oldest returns the earliest version of those that the drivers speak at most; an error where one does not answer.
func (d *Daemon) oldest() (string, error) {
	least := version.Newest
	for _, p := range d.others() {
		s, err := d.standingAt(d.ctx, raft.Server{ID: raft.ServerID(p.ID), Address: raft.ServerAddress(p.Address)})
		if err != nil {
			return "", fmt.Errorf("driver %s does not say which version it speaks: %w", p.ID, err)
		}
		if !version.AtLeast(s.Wire, least) {
			least = s.Wire
		}
	}
	return least, nil
}

// needs returns an error unless all drivers speak a version that something asks for.
func (d *Daemon) needs(what, least string) error {
	if level := d.journal.fsm.level(); !version.AtLeast(level, least) {
		return status.Errorf(codes.FailedPrecondition, "%s needs drivers that all speak %s, and they are known to "+
			"speak %s: upgrade the others, see volley drivers", what, least, level)
	}
	return nil
}

// behind returns why a driver that speaks a version may not be one of the cluster; empty where it may.
func (d *Daemon) behind(newest string) string {
	level := d.journal.fsm.level()
	if version.AtLeast(cmp.Or(newest, version.Oldest), level) {
		return ""
	}
	return fmt.Sprintf("it speaks %s, and the journal has been of %s since all drivers spoke that: upgrade it",
		cmp.Or(newest, version.Oldest), level)
}

// shownVersion returns how the version of a process is shown: of its module, where it has said that, and of the
// protocol.
func shownVersion(module, protocol string) string {
	return fmt.Sprintf("%s (%s)", cmp.Or(module, "0.1"), cmp.Or(protocol, version.Oldest))
}
