package rdd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/scheduler"
)

// stageRun carries out what is decided of a run of stages.
type stageRun struct {
	*Session
	pack    int      // that the tasks of the call read which was asked for
	args    [][]byte // of these tasks
	results map[int][][]byte
	outputs map[int][]*mapOutput // by call, of map tasks
	lost    error                // why rows of a loop's round are said to be lost
	makes   int                  // the shuffle whose map tasks it runs, which no other run does meanwhile; -1 is none
	made    func()               // lets others
}

// carryOut carries out a run to its end, and returns what the tasks of the call that was asked
// for have come to.
func (s *Session) carryOut(ctx context.Context, run *scheduler.StageRun, pack int, args [][]byte) ([][]byte, error) {
	r := &stageRun{Session: s, pack: pack, args: args, results: map[int][][]byte{},
		outputs: map[int][]*mapOutput{}, lost: errRoundLost, makes: -1}
	defer r.release()
	for ev := (scheduler.StageEvent{}); ; {
		cmd := run.Step(ev)
		switch cmd.Kind {
		case scheduler.StageDone:
			return r.results[cmd.Call], nil
		case scheduler.StageGiveUp:
			return nil, r.gaveUp(cmd)
		}
		var err error
		if ev, err = r.do(ctx, cmd); err != nil {
			return nil, err
		}
	}
}

// gaveUp returns why a run has failed.
func (r *stageRun) gaveUp(cmd scheduler.StageCommand) error {
	switch {
	case cmd.Rounds == 0:
		return r.lost
	case cmd.Err != nil:
		return fault.New(fault.LostInput, "run", r.g.name(cmd.Node),
			fmt.Errorf("what it reads was lost %d times: %w", cmd.Rounds, cmd.Err))
	}
	return fault.Newf(fault.LostInput, "run", r.g.name(cmd.Node), "what it reads was lost %d times", cmd.Rounds)
}

// release ends the claim on the shuffle that it makes.
func (r *stageRun) release() {
	if r.makes >= 0 {
		r.made()
	}
	r.makes = -1
}

// makesFor claims the shuffle whose map tasks a command is about, and reports whether another run has made some of
// them meanwhile.
func (r *stageRun) makesFor(ctx context.Context, cmd scheduler.StageCommand) (elsewhere bool, err error) {
	if r.makes == cmd.Node {
		return false, nil
	}
	made, waited, err := r.claim(ctx, making, cmd.Node)
	if err != nil {
		return false, err
	}
	if waited {
		made()
		return true, nil
	}
	r.makes, r.made = cmd.Node, made
	return false, nil
}

// do carries out a command.
func (r *stageRun) do(ctx context.Context, cmd scheduler.StageCommand) (ev scheduler.StageEvent, err error) {
	if cmd.Node != r.makes || cmd.Kind == scheduler.StageOpen {
		r.release() // before it waits for what others make
	}
	switch cmd.Kind {
	case scheduler.StageCall:
		return r.call(ctx, cmd)
	case scheduler.StageFinish:
		ev.Kind = scheduler.StageFinished
		return ev, r.finishPieces(ctx, cmd.Node, partsAt(cmd))
	case scheduler.StageOpen:
		if err := r.settleInputs(ctx, cmd.Node); err != nil {
			return r.roundLost(err)
		}
		if r.stages.Opened(cmd.Node) {
			ev.Kind = scheduler.StageElsewhere
			return ev, nil
		}
		return r.open(cmd.Node), nil
	case scheduler.StageKeep:
		return r.keep(cmd)
	case scheduler.StageCopy:
		ev.Kind = scheduler.StageCopied
		ev.Holders, err = r.copyOutputs(ctx, cmd.Node, cmd.Parts)
		return ev, err
	case scheduler.StageLook:
		ev.Kind = scheduler.StageLooked
		return ev, r.lookAt(cmd.Node)
	case scheduler.StageReplay:
		clear(r.results)
		clear(r.outputs)
		ev.Kind = scheduler.StageReplayed
		return ev, r.replayLoops(ctx)
	}
	return r.own(ctx, cmd)
}

// own does what a session does itself.
func (r *stageRun) own(ctx context.Context, cmd scheduler.StageCommand) (ev scheduler.StageEvent, err error) {
	if cmd.Kind == scheduler.StageRestart {
		err = r.loopRuns[cmd.Node].restart(ctx)
	} else {
		err = r.settle(ctx, cmd.Node)
	}
	if err != nil {
		return r.roundLost(err)
	}
	return scheduler.StageEvent{Kind: scheduler.StageSettled}, nil
}

// roundLost distinguishes rows of a round that are lost from what fails the run.
func (r *stageRun) roundLost(err error) (ev scheduler.StageEvent, _ error) {
	if !errors.Is(err, errRoundLost) {
		return ev, err
	}
	r.lost = err
	return scheduler.StageEvent{Kind: scheduler.StageRoundLost}, nil
}

// open takes up a shuffle whose input is settled.
func (r *stageRun) open(id int) scheduler.StageEvent {
	d := r.g.node(id).shuffle
	maps := d.maps()
	r.shuffled[id] = make([]*mapOutput, maps)
	r.digests[id] = map[int]uint64{}
	r.sums[id] = &outputSums{noted: make([]bool, maps)}
	ev := scheduler.StageEvent{Kind: scheduler.StageOpened, Tasks: maps, Copies: 1}
	if r.cfg.Copies {
		ev.Copies = d.copies
	}
	return ev
}

// partsAt returns the partitions that a command is about.
func partsAt(cmd scheduler.StageCommand) (parts []int) {
	for _, i := range cmd.Left {
		parts = append(parts, cmd.Parts[i])
	}
	return parts
}

// call runs what is left of a call's tasks.
func (r *stageRun) call(ctx context.Context, cmd scheduler.StageCommand) (ev scheduler.StageEvent, err error) {
	pack, args := r.pack, r.args
	if cmd.Maps {
		if elsewhere, err := r.makesFor(ctx, cmd); elsewhere || err != nil {
			ev.Kind = scheduler.StageElsewhere
			return ev, err
		}
		pack, args = plan.NoPack, make([][]byte, len(cmd.Parts))
	}
	req, err := r.request(cmd.Node, pack, cmd.Parts, args, cmd.Left)
	if err != nil {
		return ev, err
	}
	data, lost, err := r.runTasks(ctx, req)
	if err != nil {
		return ev, err
	}
	ev.Kind = scheduler.StageCalled
	if r.results[cmd.Call] == nil {
		r.results[cmd.Call], r.outputs[cmd.Call] = make([][]byte, len(cmd.Parts)), make([]*mapOutput, len(cmd.Parts))
	}
	for k, at := range cmd.Left {
		if lost[k] != nil {
			ev.Lost = append(ev.Lost, scheduler.LostTask{At: at, Loss: lossOf(lost[k]), Err: lost[k]})
			r.computeWhole(cmd.Node, cmd.Parts[at])
		} else if rest, err := r.answered(cmd, at, data[k]); err != nil {
			return ev, err
		} else if rest {
			ev.Rest = append(ev.Rest, at)
		}
	}
	return ev, nil
}

// computeWhole gives up what was computed in pieces for a task that did not find what it reads.
func (r *stageRun) computeWhole(node, part int) {
	if r.forgetPieces(node, part) {
		r.whole[[2]int{node, part}] = true
	}
}

// answered takes in what a task says, and reports whether it has handed rows back.
func (r *stageRun) answered(cmd scheduler.StageCommand, at int, raw []byte) (rest bool, err error) {
	a, err := r.take(raw)
	if err != nil {
		return false, err
	}
	part := cmd.Parts[at]
	r.forgetPieces(cmd.Node, part)
	r.outputs[cmd.Call][at] = a.Output
	if r.results[cmd.Call][at] = a.Data; a.Rest != nil {
		r.pieced[[2]int{cmd.Node, part}] = &pieced{a.Rest, []*mapOutput{&a.Rest.Kept}}
	}
	return a.Rest != nil, nil
}

func errNoOutput() error {
	return fault.Newf(fault.Corrupt, "read", "what a map task says", "it does not say what it has made")
}

// keep takes in what the map tasks of a shuffle have made.
func (r *stageRun) keep(cmd scheduler.StageCommand) (ev scheduler.StageEvent, err error) {
	ev.Kind = scheduler.StageKept
	outputs := r.outputs[cmd.Call]
	delete(r.results, cmd.Call)
	delete(r.outputs, cmd.Call)
	if !slices.Contains(outputs, nil) {
		r.cluster.Shuffled(shuffledBy(cmd.Node, outputs))
	}
	for k, m := range cmd.Parts {
		o := outputs[k]
		if o == nil {
			return ev, errNoOutput()
		}
		if err := r.sameRows(cmd.Node, m, o.Digest); err != nil {
			return ev, err
		}
		ev.Holders = append(ev.Holders, o.Holders)
		o.Holders = nil // the stages know who holds it
		r.noteOutput(cmd.Node, m, o)
	}
	return ev, nil
}
