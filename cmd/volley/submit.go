package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/driver/daemon"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/version"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/mllib"
	"github.com/volley-engine/volley/storage/objects"
)

// submitFlags are those of submit beside the job's own.
type submitFlags struct {
	driver   string
	detach   bool
	pool     string
	weight   uint32
	urgent   int32
	limit    time.Duration
	restarts int
}

func submitCommand() *cobra.Command {
	p := &programFlags{}
	c := &cobra.Command{
		Use:   "submit JOB | PACKAGE | --binary FILE",
		Short: "Run a job or a program of one's own on a cluster",
		Long: `Submit hands a job to a cluster's driver and waits for it, showing what it
prints. A JOB is a bundled one, with the flags of volley run. A PACKAGE is the
path of a Go program, which is built where it lies, in its own module; its own
flags stand after --, the engine's before. Inputs are read by the executors;
relative paths are taken from here. At an interrupt it asks whether to leave the
job running or to cancel it; without a terminal the job goes on.`,
		Example: "  volley submit ./examples/01-wordcount -- --input README.md --output counts",
		Args:    cobra.ArbitraryArgs,
		RunE:    p.submitProgram,
	}
	p.register(c)
	for _, name := range jobNames() {
		c.AddCommand(submitJobCommand(newJob(name)))
	}
	for _, j := range placedJobs() {
		c.AddCommand(submitPlacedCommand(j))
	}
	c.AddCommand(submitPredictCommand())
	return c
}

// register declares the flags.
func (s *submitFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&s.driver, "driver", "", aboutDriver)
	fs.BoolVar(&s.detach, "detach", false, "print the job's id and do not wait")
	fs.StringVar(&s.pool, "pool", "", "name of a pool, whose jobs run one after another; jobs without one run at once")
	fs.Uint32Var(&s.weight, "weight", 1, "share of the executors' slots, relative to other jobs that run at the "+
		"same time")
	fs.Int32Var(&s.urgent, "priority", 0, "of the jobs that wait for --max-jobs of the driver, those of the highest "+
		"are started first")
	fs.IntVar(&s.restarts, "max-restarts", driversRestarts, "how often the job's process is started again that was "+
		"killed or ended without a report (default: --restarts of the driver)")
	fs.DurationVar(&s.limit, "timeout", 0, "how long the job may take from its start on, after which it fails; 0 "+
		"is no limit")
}

// driversRestarts stands for as many restarts as the driver has.
const driversRestarts = -1

// mostRestarts returns how often the job's process is started again; nil is as the driver has it.
func (s *submitFlags) mostRestarts() *uint32 {
	if s.restarts == driversRestarts {
		return nil
	}
	n := uint32(s.restarts)
	return &n
}

// known refuses flags that the driver does not know of, as one of an earlier version would do without a word.
func (s *submitFlags) known(c *cobra.Command, client wire.ClusterClient, addr string) error {
	if s.mostRestarts() == nil {
		return nil
	}
	reply, err := client.Drivers(c.Context(), &wire.DriversRequest{})
	if err != nil {
		return wire.CallError("ask for its version", addr, err)
	}
	for _, d := range reply.Drivers {
		if d.State == "leads" && d.Version == version.Oldest { // later ones say that of their module, too
			return usage(c, "max-restarts", "the driver at %s is of an earlier version, and knows nothing of it", addr)
		}
	}
	return nil
}

// embeddedOnly are flags of volley run that do not apply on a cluster: its
// executors have their own, and its jobs keep their own checkpoints.
var embeddedOnly = []string{"executors", "slots", "memory", "disk", "pace", "pace-rate", "clock", "data-dir",
	"checkpoint-dir", "checkpoint-every", "resume"}

// asked is what the submitter of a job wants of it here.
type asked struct {
	out, eventLog   string
	overwrite, json bool
	quiet           bool
}

func (f *trainFlags) asked() asked {
	return asked{f.out, f.engine.EventLog(), f.overwrite, f.json, f.quiet}
}

// validate checks the flags that concern the cluster before a job is submitted.
func (s *submitFlags) validate(c *cobra.Command, a asked) error {
	for _, name := range embeddedOnly {
		if c.Flags().Changed(name) {
			return usage(c, name, "it means nothing on a cluster: executors have their own, and jobs keep their own "+
				"checkpoints")
		}
	}
	if c.Flags().Changed("ui") {
		return usage(c, "ui", "a job of a cluster is on its driver's page: volley driver --http prints the link")
	}
	if s.weight == 0 {
		return usage(c, "weight", "0 is no weight")
	}
	if s.restarts < driversRestarts || s.restarts > 1000 {
		return usage(c, "max-restarts", "%d is not between 0 and 1000", s.restarts)
	}
	if s.limit < 0 {
		return usage(c, "timeout", "%v is negative", s.limit)
	}
	if s.detach && (a.out != "" || a.eventLog != "") {
		return usage(c, "detach", "a detached job cannot download --out and --event-log: ask for them later with "+
			"volley job ID --out DIR")
	}
	for flag, path := range map[string]string{"out": a.out, "event-log": a.eventLog} {
		if path == "" || flag == "out" && objects.Is(path) {
			continue
		}
		if info, err := os.Stat(filepath.Dir(filepath.Clean(path))); err != nil || !info.IsDir() {
			return usage(c, flag, "there is no directory %s", filepath.Dir(filepath.Clean(path)))
		}
	}
	return nil
}

// kept are the flags that concern the submitter's side.
var kept = []string{"driver", "detach", "pool", "weight", "priority", "timeout", "max-restarts", "binary", "json",
	"quiet", "out", "overwrite", "event-log", "config", "data-dir", "checkpoint-dir", "checkpoint-every", "resume"}

// jobArgs returns the flags that travel with the job; paths become absolute.
func jobArgs(c *cobra.Command) []string {
	var args []string
	c.Flags().Visit(func(f *pflag.Flag) {
		if slices.Contains(kept, f.Name) {
			return
		}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values := list.GetSlice()
			if f.Name == "data" || f.Name == "test" {
				values = absolute(values)
			}
			for _, v := range values {
				args = append(args, "--"+f.Name+"="+v)
			}
			return
		}
		value := f.Value.String()
		if f.Name == "output" {
			value = absolute([]string{value})[0]
		}
		if isFile := f.Name == "init" || f.Name == "centers" || f.Name == "vocab"; isFile {
			if _, err := os.Stat(value); err == nil {
				value = absolute([]string{value})[0]
			}
		}
		args = append(args, "--"+f.Name+"="+value)
	})
	return args
}

// submit hands a job to the driver and returns what has become of it, once bring has what it has made; nil where its
// submitter does not wait for it.
func submit(c *cobra.Command, job string, args []string, s *submitFlags, a asked, bring func(*watcher) error) (
	*wire.JobInfo, error) {
	to, err := findDriver(s.driver)
	if err != nil {
		return nil, err
	}
	client, done, err := to.dial()
	if err != nil {
		return nil, err
	}
	defer done()
	if err := s.known(c, client, to.addr); err != nil {
		return nil, err
	}
	wait, _ := c.Flags().GetDuration("max-wait")
	reply, err := client.Submit(c.Context(),
		&wire.SubmitRequest{Job: job, Args: args, Pool: s.pool, Weight: s.weight, Priority: s.urgent,
			TimeoutNs: int64(s.limit), Restarts: s.mostRestarts()})
	if err != nil {
		return nil, wire.CallError("submit to", to.addr, err)
	}
	if s.detach && a.json {
		return nil, printJSON(map[string]string{"id": reply.Id})
	}
	if s.detach {
		fmt.Println(reply.Id)
		return nil, nil
	}
	w := &watcher{client: client, addr: to.addr, id: reply.Id, maxWait: wait, log: os.Stderr}
	if a.quiet {
		w.log = io.Discard
	}
	info, err := w.follow(c.Context())
	if c.Context().Err() != nil {
		return nil, leaveOrCancel(client, s.driver, reply.Id)
	}
	if err != nil {
		return nil, err
	}
	if err := outcomeOf(info); err != nil {
		return nil, err
	}
	return info, bring(w)
}

// leaveOrCancel asks what to do with a job whose submitter was interrupted.
// Without a terminal the job goes on.
func leaveOrCancel(client wire.ClusterClient, addr, id string) error { // addr is as --driver had it
	if term.IsTerminal(int(os.Stdin.Fd())) {
		fmt.Fprintf(os.Stderr, "\nvolley: cancel %s? [y/N] ", id)
		answer, _ := bufio.NewReader(os.Stdin).ReadString('\n')
		if a := strings.ToLower(strings.TrimSpace(answer)); a == "y" || a == "yes" {
			ctx, done := context.WithTimeout(context.Background(), 10*time.Second)
			defer done()
			if _, err := client.Cancel(ctx, &wire.CancelRequest{Id: id}); err != nil {
				return wire.CallError("cancel "+id+" at", addr, err)
			}
			return errInterrupted
		}
	}
	at := ""
	if addr != "" {
		at = " --driver " + addr
	}
	fmt.Fprintf(os.Stderr, "volley: %s goes on; volley logs -f %s%s follows it, volley job %s%s --out DIR brings its "+
		"model, volley cancel %s%s ends it\n", id, id, at, id, at, id, at)
	return errInterrupted
}

// outcomeOf returns the error of a job that did not complete.
func outcomeOf(info *wire.JobInfo) error {
	if info.State == daemon.JobDone {
		return nil
	}
	return fault.Newf(fault.UserCode, "run", info.Id, "%s: %s", info.State, info.Why)
}

// showResult prints the job's result, as volley run does.
func showResult(info *wire.JobInfo, f *trainFlags) error {
	r := &runResult{}
	if err := json.Unmarshal([]byte(info.Result), r); err != nil {
		return fault.New(fault.Corrupt, "read the result of", info.Id, err)
	}
	r.Model = f.out
	if err := newScreen(f.json, true).result(r); err != nil {
		return err
	}
	return f.converged(r)
}

// watcher follows a job, across reconnects.
type watcher struct {
	client  wire.ClusterClient
	addr    string
	id      string
	task    string
	maxWait time.Duration
	log     io.Writer
	offset  uint64
}

// follow copies the job's log until the job has ended.
func (w *watcher) follow(ctx context.Context) (*wire.JobInfo, error) {
	var since time.Time
	for {
		before, began := w.offset, time.Now()
		info, err := w.once(ctx, true)
		if err == nil || ctx.Err() != nil || status.Code(err) != codes.Unavailable {
			return info, wire.CallError("follow "+w.id+" at", w.addr, err)
		}
		if since.IsZero() || w.offset > before || time.Since(began) > time.Second {
			since = time.Now()
		}
		if time.Since(since) > w.maxWait {
			return nil, wire.CallError("reach the driver at", w.addr, err)
		}
		timer := time.NewTimer(200 * time.Millisecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

func (w *watcher) once(ctx context.Context, follow bool) (*wire.JobInfo, error) {
	stream, err := w.client.Watch(ctx, &wire.WatchRequest{Id: w.id, Follow: follow, Offset: w.offset, Task: w.task})
	if err != nil {
		return nil, err
	}
	for {
		m, err := stream.Recv()
		if err != nil {
			return nil, err
		}
		if m.Ended != nil {
			return m.Ended, nil
		}
		w.offset = m.Next
		if _, err := w.log.Write(m.Log); err != nil {
			return nil, err
		}
	}
}

// brings returns what downloads what a submitter has asked for.
func (a asked) brings(ctx context.Context) func(*watcher) error {
	return func(w *watcher) error { return w.bring(ctx, a.out, a.overwrite, a.eventLog) }
}

// bring downloads the job's model and event log to where the submitter asked for them.
func (w *watcher) bring(ctx context.Context, out string, overwrite bool, eventLog string) error {
	if out == "" && eventLog == "" {
		return nil
	}
	files, err := w.files(ctx)
	if err != nil {
		return err
	}
	if eventLog != "" {
		if err := os.WriteFile(eventLog, files["events.jsonl"], 0o644); err != nil {
			return fault.New(fault.NoResources, "write the event log", eventLog, err)
		}
	}
	if out == "" {
		return nil
	}
	return placeModel(out, overwrite, files)
}

// files downloads what the job has made.
func (w *watcher) files(ctx context.Context) (map[string][]byte, error) {
	stream, err := w.client.Download(ctx, &wire.DownloadRequest{Id: w.id})
	if err != nil {
		return nil, wire.CallError("download from", w.addr, err)
	}
	files := map[string][]byte{}
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, wire.CallError("download from", w.addr, err)
		}
		files[part.Path] = append(files[part.Path], part.Data...)
	}
}

// placeModel writes a model's directory atomically.
func placeModel(out string, overwrite bool, files map[string][]byte) error {
	if objects.Is(out) {
		made := map[string][]byte{}
		for name, raw := range files {
			if filepath.Dir(name) == "out" {
				made[filepath.Base(name)] = raw
			}
		}
		return mllib.PlaceObjects(out, overwrite, made)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(filepath.Clean(out)), ".volley-model-*")
	if err != nil {
		return fault.New(fault.NoResources, "write the model in", out, err)
	}
	defer os.RemoveAll(tmp)
	for name, raw := range files {
		if filepath.Dir(name) != "out" {
			continue
		}
		if err := os.WriteFile(filepath.Join(tmp, filepath.Base(name)), raw, 0o644); err != nil {
			return fault.New(fault.NoResources, "write the model in", out, err)
		}
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) == 0 {
		return fault.Newf(fault.NoResources, "write the model in", out, "the driver has none")
	}
	if err := mllib.CanSave(out, overwrite); err != nil { // hours may have passed
		return err
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		return fault.New(fault.NoResources, "write the model in", out, err)
	}
	if overwrite {
		if err := os.RemoveAll(out); err != nil {
			return fault.New(fault.NoResources, "replace", out, err)
		}
	}
	if err := os.Rename(tmp, out); err != nil {
		return fault.New(fault.NoResources, "write the model in", out, err)
	}
	return nil
}
