package daemon

import (
	"context"
	"path/filepath"
	"sync"
	"time"

	arrowflight "github.com/apache/arrow/go/v15/arrow/flight"
	"google.golang.org/grpc"

	"github.com/volley-engine/volley/internal/flight"
	"github.com/volley-engine/volley/internal/wire"
)

// Daemon is a driver while it leads: it knows executors and jobs, starts a process
// for each job, and carries messages between the two.
type Daemon struct {
	wire.UnimplementedClusterServer
	wire.UnimplementedBlocksServer
	*Replica
	term        uint64 // of the journal, in which it leads
	server      *grpc.Server
	jobs        *jobTable
	members     *members
	handovers   handovers
	flightKey   []byte // of the tickets of Arrow clients
	saving      saving // by these
	inspections inspections
	copier      *copier
	leases      leases
	lacks       sync.Map // jobs whose files a driver lacks, by its id
	ctx         context.Context
	cancel      context.CancelFunc
	stopWatch   context.CancelFunc
	wg          sync.WaitGroup
}

// lead begins what a driver does while it leads, with what the journal has.
func (r *Replica) lead(term uint64) (*Daemon, error) {
	d := &Daemon{Replica: r, term: term, members: newMembers(), flightKey: flight.NewKey()}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.copier, d.leases.began = newCopier(d), time.Now()
	kept := r.journal.State()
	d.jobs = openJobs(d, kept)
	r.admission.takeOver(kept.Access)
	if err := r.admission.certificatesOfInit(d.ctx, r.cfg.DataDir); err != nil {
		d.cancel()
		return nil, err
	}
	gate := wire.Gate{Knows: r.admission.knows, Admit: d.admit, Refused: r.refusedConnection}
	d.server = r.admission.self.NewServer(gate, grpc.UnaryInterceptor(d.noted), flight.Codec())
	wire.RegisterClusterServer(d.server, d)
	wire.RegisterBlocksServer(d.server, d)
	arrowflight.RegisterFlightServiceServer(d.server, d.flightDoor())
	r.present.Store(d)
	d.jobs.step(LifeEvent{Began: true}) // before any submission; until then callers wait
	calls := r.door.Calls()             // from now on who calls waits, and is not turned away
	d.wg.Go(func() { _ = d.server.Serve(calls) })
	watched, stop := context.WithCancel(context.Background()) // until executors have been notified
	d.stopWatch = stop
	d.wg.Go(func() { d.watch(watched) })
	d.wg.Go(d.beat)
	d.wg.Go(d.keepAgreed)
	d.wg.Go(d.reconcile)
	d.wg.Go(d.raiseLevel)
	d.wg.Go(d.watchQuota)
	d.wg.Go(func() {
		if err := removeLeftOver(filepath.Join(r.cfg.DataDir, "jobs"), kept); err != nil {
			d.log.Error("cannot remove what jobs have left", "error", err)
		}
	})
	return d, nil
}

// watch treats executors and job processes without heartbeats as lost.
func (d *Daemon) watch(ctx context.Context) {
	detector := wire.NewFailureDetector(d.cfg.beat())
	ticker := time.NewTicker(detector.Tick())
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			detector.Look(time.Now())
			for _, m := range d.members.silent(detector) {
				d.log.Warn("executor suspected", "executor", m.name, "silent for", detector.Silence())
				m.drop("it gave no heartbeat for " + detector.Silence().String())
			}
			d.jobs.killSilent(detector)
			d.dropRevoked()
		case <-ctx.Done():
			return
		}
	}
}

// end ends the processes of jobs, which go on under the next driver that leads, and the connections; executors are told
// to end, too, where there is no other driver.
func (d *Daemon) end(last bool) {
	until := time.Now().Add(d.cfg.Drain)
	d.jobs.close(time.Until(until))
	if last {
		for _, m := range d.members.all() {
			_ = m.out.Put(goodbye)
		}
		d.members.waitGone(time.Until(until))
	}
	d.stopWatch()
	d.cancel()
	d.server.Stop()
	d.wg.Wait()
	d.copier.close()
}
