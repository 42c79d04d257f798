package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/volley-engine/volley/driver/daemon"
	"github.com/volley-engine/volley/internal/wire"
)

// clientCommand returns a command that sends a request to a cluster's driver.
func clientCommand(use, short, long string, args cobra.PositionalArgs,
	run func(ctx context.Context, client wire.ClusterClient, addr string, args []string,
		asJSON bool) error) *cobra.Command {
	var addr, config string
	var asJSON bool
	c := &cobra.Command{Use: use, Short: short, Long: long, Args: args,
		RunE: func(c *cobra.Command, args []string) error {
			if err := fillFlags(c); err != nil {
				return err
			}
			to, err := findDriver(addr)
			if err != nil {
				return err
			}
			client, done, err := to.dial()
			if err != nil {
				return err
			}
			defer done()
			ctx, cancel := context.WithCancel(c.Context())
			defer cancel()
			return run(ctx, client, to.addr, args, asJSON)
		}}
	c.Flags().StringVar(&addr, "driver", "", aboutDriver)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().StringVar(&config, "config", "", "YAML file with values for flags")
	return c
}

func jobsCommand() *cobra.Command {
	var p pruning
	var c *cobra.Command
	c = clientCommand("jobs", "List the jobs of a cluster, or remove those that have ended", `Jobs lists what was submitted to a driver, oldest first. With --prune it removes
jobs that have ended, with their models and logs: those beyond --keep at once, or
without it those beyond the driver's own --keep that ended ten minutes ago or
earlier, as the driver does by itself every minute.`, exactArgs(0, "no arguments"),
		func(ctx context.Context, client wire.ClusterClient, addr string, _ []string, asJSON bool) error {
			own := c.Flags().Changed("keep")
			switch {
			case own && !p.on:
				return usage(c, "keep", "it says what --prune leaves, which is not there")
			case p.on:
				return p.run(ctx, client, addr, own, asJSON)
			}
			return listJobs(ctx, client, addr, asJSON)
		})
	c.Example = "  volley jobs --prune --keep count=10,age=7d"
	p.register(c)
	return c
}

func listJobs(ctx context.Context, client wire.ClusterClient, addr string, asJSON bool) error {
	reply, err := client.Jobs(ctx, &wire.JobsRequest{Brief: !asJSON})
	if err != nil {
		return wire.CallError("list the jobs of", addr, err)
	}
	lines := make([]daemon.JobView, 0, len(reply.Jobs))
	for _, i := range reply.Jobs {
		lines = append(lines, daemon.ViewJob(i))
	}
	if asJSON {
		return printJSON(lines)
	}
	return table("ID\tJOB\tSTATE\tSTEP\tITERATION\tOBJECTIVE\tLEFT\tSUBMITTED\tWHY", func(row func(...any)) {
		for _, l := range lines {
			iteration, objective, left := stands(l.LoopView)
			row(l.ID, l.Job, l.State, l.Step, iteration, objective, left, l.Submitted.Format(time.DateTime), l.Why)
		}
	})
}

// stands returns how a job's loop stands, as a table has it.
func stands(s daemon.LoopView) (iteration, objective, left string) {
	iteration, objective, left = "–", "–", "–"
	if s.Iteration != nil {
		iteration = fmt.Sprint(*s.Iteration)
	}
	if s.Objective != nil {
		objective = fmt.Sprintf("%.6g", *s.Objective)
	}
	if s.Left > 0 {
		left = time.Duration(s.Left * float64(time.Second)).Round(time.Second).String()
	}
	return iteration, objective, left
}

// table prints columns under a heading.
func table(heading string, fill func(row func(...any))) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, heading)
	fill(func(cells ...any) {
		text := make([]string, len(cells))
		for i, c := range cells {
			text[i] = fmt.Sprint(c)
		}
		fmt.Fprintln(w, strings.Join(text, "\t"))
	})
	return w.Flush()
}

func jobCommand() *cobra.Command {
	var out, eventLog string
	var overwrite, stacks bool
	var profile time.Duration
	c := clientCommand("job ID", "Describe a job of a cluster", `Job says how a job stands, and what it has come to. With --out and --event-log
it brings the model and the event log of a job that has ended. --stacks prints what
each goroutine of its process and its runners does, --profile what their processors
are busy with: both are an admin's.`, exactArgs(1, "the id of a job"),
		func(ctx context.Context, client wire.ClusterClient, addr string, args []string, asJSON bool) error {
			if stacks || profile != 0 {
				return inspect(ctx, client, addr, args[0], profile, out)
			}
			reply, err := client.Jobs(ctx, &wire.JobsRequest{Id: args[0]})
			if err != nil {
				return wire.CallError("ask for "+args[0]+" at", addr, err)
			}
			l := daemon.ViewJob(reply.Jobs[0])
			if out != "" || eventLog != "" {
				if err := outcomeOf(reply.Jobs[0]); err != nil {
					return err
				}
				w := &watcher{client: client, addr: addr, id: args[0]}
				if err := w.bring(ctx, out, overwrite, eventLog); err != nil {
					return err
				}
			}
			if asJSON {
				return printJSON(l)
			}
			fmt.Printf("%s  %s  %s  step %d\nsubmitted %s\nflags     %s\n", l.ID, l.Job, l.State, l.Step,
				l.Submitted.Format(time.DateTime), strings.Join(l.Args, " "))
			if l.Owner != "" {
				fmt.Println("owner    ", l.Owner)
			}
			if l.Priority != 0 {
				fmt.Println("priority ", l.Priority)
			}
			if l.Timeout > 0 {
				fmt.Println("timeout  ", time.Duration(l.Timeout*float64(time.Second)))
			}
			if l.Why != "" {
				fmt.Println("why      ", l.Why)
			}
			if l.Result != nil {
				fmt.Println("result   ", string(l.Result))
			}
			if look, err := lookAt(ctx, client, args[0]); err == nil && look != "" { // its log may be gone
				fmt.Print("\n", look)
			}
			return nil
		})
	c.Flags().StringVar(&out, "out", "", "directory for the job's model")
	c.Flags().StringVar(&eventLog, "event-log", "", "file for the job's event log")
	c.Flags().BoolVar(&overwrite, "overwrite", false, "replace the model directory if it exists")
	c.Flags().BoolVar(&stacks, "stacks", false, "print the stacks of the job's process and its runners")
	c.Flags().DurationVar(&profile, "profile", 0, "watch their processors for so long; a file each for go tool "+
		"pprof, in --out or here")
	c.AddCommand(resumeCommand(), removeCommand())
	return c
}

func resumeCommand() *cobra.Command {
	return clientCommand("resume ID", "Have a job go on that has failed or was cancelled", `Resume starts a job again from its last checkpoint, under its id and with its
flags, once what it has failed of is put in order. Its restarts count anew.`, exactArgs(1, "the id of a job"),
		func(ctx context.Context, client wire.ClusterClient, addr string, args []string, _ bool) error {
			_, err := client.Resume(ctx, &wire.ResumeRequest{Id: args[0]})
			return wire.CallError("resume "+args[0]+" at", addr, err)
		})
}

func removeCommand() *cobra.Command {
	return clientCommand("rm ID", "Remove a job that has ended", `Rm removes a job with its model, logs and event log at once, whatever --keep of
the driver says.`, exactArgs(1, "the id of a job"),
		func(ctx context.Context, client wire.ClusterClient, addr string, args []string, _ bool) error {
			_, err := client.Remove(ctx, &wire.RemoveRequest{Id: args[0]})
			return wire.CallError("remove "+args[0]+" at", addr, err)
		})
}

func logsCommand() *cobra.Command {
	var follow bool
	var task string
	var wait time.Duration
	c := clientCommand("logs ID", "Show what a job has printed", `Logs prints what a job's process has written, or with --task what an
executor's runner of it has. With -f it goes on until the job has ended.`, exactArgs(1, "the id of a job"),
		func(ctx context.Context, client wire.ClusterClient, addr string, args []string, _ bool) error {
			w := &watcher{client: client, addr: addr, id: args[0], task: task, maxWait: wait, log: os.Stdout}
			if !follow {
				_, err := w.once(ctx, false)
				return wire.CallError("read the log of "+args[0]+" at", addr, err)
			}
			info, err := w.follow(ctx)
			if err != nil {
				return err
			}
			return outcomeOf(info)
		})
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the job has ended")
	c.Flags().StringVar(&task, "task", "", "name of an executor: what its runner has printed")
	c.Flags().DurationVar(&wait, "max-wait", 10*time.Minute, "how long to look for a driver that is gone")
	return c
}

func cancelCommand() *cobra.Command {
	return clientCommand("cancel ID", "Stop a job of a cluster", "Cancel stops a job at the end of its step.",
		exactArgs(1, "the id of a job"),
		func(ctx context.Context, client wire.ClusterClient, addr string, args []string, _ bool) error {
			before, err := client.Jobs(ctx, &wire.JobsRequest{Id: args[0]})
			if err == nil {
				_, err = client.Cancel(ctx, &wire.CancelRequest{Id: args[0]})
			}
			if err != nil {
				return wire.CallError("cancel "+args[0]+" at", addr, err)
			}
			if j := before.Jobs[0]; daemon.Over(j.State) {
				fmt.Fprintf(os.Stderr, "volley: %s had ended already: %s\n", j.Id, j.State)
			}
			return nil
		})
}

func drainCommand() *cobra.Command {
	return clientCommand("drain NAME", "Move an executor's packs elsewhere and give it no more work",
		"Drain prepares an executor for its end: running jobs move their splits off it\nwhile they go on. volley "+
			"executors shows it as drained when nothing is left.", exactArgs(1, "the name of an executor"),
		func(ctx context.Context, client wire.ClusterClient, addr string, args []string, _ bool) error {
			_, err := client.Drain(ctx, &wire.DrainRequest{Name: args[0]})
			return wire.CallError("drain "+args[0]+" at", addr, err)
		})
}

func executorsCommand() *cobra.Command {
	c := clientCommand("executors", "List the executors of a cluster",
		"Executors lists every executor that the driver has known, lost ones included.",
		exactArgs(0, "no arguments"),
		func(ctx context.Context, client wire.ClusterClient, addr string, _ []string, asJSON bool) error {
			reply, err := client.Executors(ctx, &wire.ExecutorsRequest{})
			if err != nil {
				return wire.CallError("list the executors of", addr, err)
			}
			lines := make([]daemon.ExecutorView, 0, len(reply.Executors))
			for _, e := range reply.Executors {
				lines = append(lines, daemon.ViewExecutor(e))
			}
			if asJSON {
				return printJSON(lines)
			}
			const columns = "NAME\tSTATE\tSLOTS\tSPLITS\tROWS/S\tMEMORY\tDISK\tSINCE\tVERSION\tWHY"
			return table(columns, func(row func(...any)) {
				for _, l := range lines {
					row(l.Name, l.State, l.Slots, l.Splits, fmt.Sprintf("%.3g", l.RowsPerSecond), mib(l.Memory),
						mib(l.Disk), l.Since.Format(time.DateTime), l.Version, l.Why)
				}
			})
		})
	c.AddCommand(drainCommand())
	return c
}

func mib(n uint64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
