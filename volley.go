// Package volley is what a user's program calls: Main runs a plan and its loop, on a cluster
// embedded in this process, or in the role for which a cluster has started this process.
//
// It owns no part of the engine: internal/host joins them.
package volley

import (
	"context"
	"encoding/json"
	"runtime/debug"

	"github.com/volley-engine/volley/executor"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/host"
	"github.com/volley-engine/volley/internal/version"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/rdd"
)

// Version is the version of this module.
const Version = version.Module

// Config configures how a program runs embedded. The zero value of a field
// takes its default.
type Config = host.Config

// Loss is an executor of an embedded cluster that is lost: for tests. Package volleytest draws them.
type Loss = host.Loss

// Outcome is what the engine knows of a finished run.
type Outcome = host.Outcome

// Passes counts a job's passes over its data by how they were made.
type Passes = host.Passes

// DefaultDataDir returns the default directory of packs.
func DefaultDataDir() string { return host.DefaultDataDir() }

// Run builds a plan and runs its loop on an embedded cluster. build must
// depend on args only. run gets a session whose steps the cluster runs; what
// it returns as stoppedBy goes to the event log.
func Run[A, P any](ctx context.Context, cfg Config, name string, args A,
	build func(*rdd.Graph, A) P, run func(ctx context.Context, s *rdd.Session, args A, p P) (stoppedBy string,
		err error)) (*Outcome, error) {
	g, p, err := buildPlan(args, build)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(args)
	if err != nil {
		return nil, fault.New(fault.UserCode, "encode", "the program's arguments", err)
	}
	again := func() (executor.Program, error) {
		g, _, err := buildPlan(args, build)
		return g, err
	}
	return host.Run(ctx, cfg, wire.ThisProcess(),
		host.Program{Name: name, Version: Version, Args: raw, Graph: g, Again: again},
		func(ctx context.Context, s *rdd.Session) (stoppedBy string, err error) {
			defer recovered("run", "the program", &err)
			return run(ctx, s, args, p)
		})
}

// Explain returns the plan that build makes of args, with the bytes of its files; nothing is run. Within a program,
// Session.Explained has what its actions have come to as well.
func Explain[A, P any](ctx context.Context, args A, build func(*rdd.Graph, A) P) (*rdd.Explanation, error) {
	g, _, err := buildPlan(args, build)
	if err != nil {
		return nil, err
	}
	if _, err := g.Resolve(ctx); err != nil {
		return nil, err
	}
	return g.Explained(), nil
}

// recovered makes an error of a panic of the program, with where it was: on a cluster it reaches who has submitted the
// job, and the job's other parts end as they should.
func recovered(op, subject string, err *error) {
	if r := recover(); r != nil {
		*err = fault.Newf(fault.UserCode, op, subject, "panic: %v\n%s", r, debug.Stack())
	}
}

func buildPlan[A, P any](args A, build func(*rdd.Graph, A) P) (g *rdd.Graph, p P, err error) {
	defer recovered("build", "the plan", &err)
	g = rdd.NewGraph()
	p = build(g, args)
	return g, p, g.Err()
}
