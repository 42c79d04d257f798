package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/driver/daemon"
	"github.com/volley-engine/volley/internal/chart"
	"github.com/volley-engine/volley/internal/wire"
)

func topCommand() *cobra.Command {
	var every time.Duration
	var once bool
	c := clientCommand("top [ID]", "Show a cluster and a job in the terminal, as they go", `Top shows jobs, executors and, of a job, what its page has: whether it is done, which
executor is slow, and the share of each split in the last steps. Without an ID it is the
job that was submitted last of those that run. It goes on until ctrl-C; where there is no
terminal, or with --once, it is printed once.`, cobra.MaximumNArgs(1),
		func(ctx context.Context, client wire.ClusterClient, addr string, args []string, asJSON bool) error {
			t := &top{client: client, addr: addr, id: strings.Join(args, ""), json: asJSON,
				live: !once && !asJSON && term.IsTerminal(int(os.Stdout.Fd()))}
			return t.run(ctx, max(every, leastEvery))
		})
	c.Example = "  volley top\n  volley top job-000001 --once"
	c.Flags().DurationVar(&every, "every", time.Second, "how often it is shown anew")
	c.Flags().BoolVar(&once, "once", false, "print it once")
	return c
}

func pageCommand() *cobra.Command {
	return clientCommand("page", "Print a link to a driver's page, which works once", `Page prints a link that lets the first browser in that opens it: on a cluster of one
user as that user, on others to read. The driver that leads has a page where it was
started with --http.`, exactArgs(0, "no arguments beside flags"),
		func(ctx context.Context, client wire.ClusterClient, addr string, _ []string, asJSON bool) error {
			reply, err := client.Page(ctx, &wire.PageRequest{})
			if err != nil {
				return wire.CallError("ask for a link to the page of", addr, err)
			}
			if asJSON {
				return printJSON(map[string]string{"page": reply.Link})
			}
			fmt.Println(reply.Link)
			return nil
		})
}

// leastEvery is how often a driver is asked at most.
const leastEvery = 200 * time.Millisecond

// top shows a cluster.
type top struct {
	client wire.ClusterClient
	addr   string
	id     string
	live   bool
	json   bool
}

// run shows it until it is interrupted.
func (t *top) run(ctx context.Context, every time.Duration) error {
	again := time.NewTicker(every)
	defer again.Stop()
	for {
		text, err := t.text(ctx)
		if ctx.Err() != nil && t.live {
			return nil
		}
		if err != nil {
			return err
		}
		if !t.live {
			fmt.Print(text)
			return nil
		}
		fmt.Print("\x1b[H\x1b[J", fitted(text))
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// terminalSize returns that of the terminal.
func terminalSize() (columns, lines int) {
	columns, lines, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil || columns <= 0 {
		return 100, 1 << 20
	}
	return columns, lines
}

// fitted returns the lines of a text that a terminal has room for.
func fitted(text string) string {
	columns, most := terminalSize()
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	lines = lines[:min(len(lines), max(1, most-1))]
	for i, l := range lines {
		if r := []rune(l); len(r) > columns {
			lines[i] = string(r[:columns])
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// How many jobs and executors are shown.
const (
	topJobs      = 8
	topExecutors = 12
)

// text returns what there is to show.
func (t *top) text(ctx context.Context) (string, error) {
	jobs, err := t.client.Jobs(ctx, &wire.JobsRequest{Brief: true})
	if err != nil {
		return "", wire.CallError("list the jobs of", t.addr, err)
	}
	executors, err := t.client.Executors(ctx, &wire.ExecutorsRequest{})
	if err != nil {
		return "", wire.CallError("list the executors of", t.addr, err)
	}
	if t.json {
		return "", printTop(jobs.Jobs, executors.Executors)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s\n\n", t.addr, time.Now().Format(time.DateTime))
	shown := t.jobs(&b, jobs.Jobs)
	topOf(&b, executors.Executors)
	if shown == "" {
		return b.String(), nil
	}
	look, err := lookAt(ctx, t.client, shown)
	if err != nil {
		return "", wire.CallError("look at "+shown+" at", t.addr, err)
	}
	if look == "" {
		look = "It has made no step yet.\n"
	}
	return b.String() + "\n" + shown + "\n\n" + look, nil
}

// printTop prints jobs and executors for programs.
func printTop(jobs []*wire.JobInfo, executors []*wire.ExecutorInfo) error {
	out := struct {
		Jobs      []daemon.JobView      `json:"jobs"`
		Executors []daemon.ExecutorView `json:"executors"`
	}{[]daemon.JobView{}, []daemon.ExecutorView{}}
	for _, j := range jobs {
		out.Jobs = append(out.Jobs, daemon.ViewJob(j))
	}
	for _, e := range executors {
		out.Executors = append(out.Executors, daemon.ViewExecutor(e))
	}
	return printJSON(out)
}

// lookAt returns how a job goes; empty where there is nothing to show yet, or the driver is of an earlier version.
func lookAt(ctx context.Context, client wire.ClusterClient, id string) (string, error) {
	columns, _ := terminalSize()
	look, err := client.Look(ctx, &wire.LookRequest{Id: id, Columns: uint32(columns)})
	if status.Code(err) == codes.Unimplemented {
		return "", nil
	}
	return look.GetText(), err
}

// jobs shows the newest, those that run before others, and returns which one is looked at.
func (t *top) jobs(b *strings.Builder, all []*wire.JobInfo) (shown string) {
	slices.Reverse(all)
	slices.SortStableFunc(all, func(x, y *wire.JobInfo) int { return stateRank(x.State) - stateRank(y.State) })
	if shown = t.id; shown == "" && len(all) > 0 {
		shown = all[0].Id
	}
	fmt.Fprintf(b, "%-10s %-12s %-9s %6s %9s %10s %7s %6s  %s\n", "JOB", "WHAT", "STATE", "STEP", "ITERATION",
		"OBJECTIVE", "LEFT", "TOOK", "WHY")
	for i, j := range all {
		if i == topJobs {
			fmt.Fprintf(b, "and %d more\n", len(all)-i)
			break
		}
		end := time.Now()
		if j.EndedUnixNs != 0 {
			end = time.Unix(0, j.EndedUnixNs)
		}
		iteration, objective, left := stands(daemon.ViewJob(j).LoopView)
		fmt.Fprintf(b, "%-10s %-12s %-9s %6d %9s %10s %7s %6s  %s\n", j.Id, short(j.Job, 12), j.State, j.Step,
			iteration, objective, left, end.Sub(time.Unix(0, j.SubmittedUnixNs)).Round(time.Second),
			short(oneLine(j.Why), 60))
	}
	return shown
}

// stateRank orders jobs: those that run, then those that wait, then the others.
func stateRank(state string) int {
	if at := slices.Index([]string{"running", "waiting"}, state); at >= 0 {
		return at
	}
	return 2
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func short(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

// topOf shows executors, those that are lost first, and how fast each is beside the fastest.
func topOf(b *strings.Builder, all []*wire.ExecutorInfo) {
	fastest := 0.0
	for _, e := range all {
		fastest = max(fastest, e.RowsPerSecond)
	}
	slices.SortStableFunc(all, func(x, y *wire.ExecutorInfo) int {
		return map[bool]int{true: 1}[x.State == "alive"] - map[bool]int{true: 1}[y.State == "alive"]
	})
	fmt.Fprintf(b, "\n%-20s  %-9s %5s %7s  %12s  %s\n", "EXECUTOR", "STATE", "SLOTS", "SPLITS", "ROWS/S", "")
	for i, e := range all {
		if i == topExecutors {
			fmt.Fprintf(b, "and %d more\n", len(all)-i)
			break
		}
		bar := ""
		if fastest > 0 {
			bar = strings.Repeat("█", int(20*e.RowsPerSecond/fastest))
		}
		fmt.Fprintf(b, "%-20s  %-9s %5d %7d  %12s  %s %s\n", short(e.Name, 20), e.State, e.Slots, e.Splits,
			chart.Number(e.RowsPerSecond), bar, short(oneLine(e.Why), 60))
	}
}
