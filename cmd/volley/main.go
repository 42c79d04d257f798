// Command volley trains, evaluates and inspects models on an embedded
// cluster, and checks and replays what a run has logged.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/wire"
)

// parsing is what strconv says beside what is wrong.
var parsing = regexp.MustCompile(`strconv\.\w+: parsing "[^"]*": `)

// oneOfThem takes commands below one whose own flags mean nothing: what it says of a name that there is none of comes
// before what flags say.
func oneOfThem(c *cobra.Command, names func() []string, what string) *cobra.Command {
	c.FParseErrWhitelist.UnknownFlags = true
	c.RunE = func(*cobra.Command, []string) error { return nil }
	c.Args = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fault.Newf(fault.Usage, "use", c.CommandPath(), "the name of a %s is missing", what).
				WithHint("one of " + strings.Join(names(), ", "))
		}
		return fault.Newf(fault.Usage, "use", c.CommandPath(), "%q is no %s", args[0], what).
			WithHint("one of " + strings.Join(names(), ", "))
	}
	return c
}

func main() { os.Exit(realMain(os.Args[1:])) }

func realMain(args []string) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	interrupts := make(chan os.Signal, 2)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-interrupts
		if len(args) > 0 && args[0] == "run" && wire.ThisProcess().Role == "" {
			fmt.Fprintln(os.Stderr, "volley: stopping at the end of this step; interrupt again to stop at once")
		}
		cancel()
		<-interrupts
		os.Exit(volley.ExitInterrupted)
	}()
	cmd := rootCommand()
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	if err != nil && strings.HasPrefix(err.Error(), "unknown command") {
		err = fault.New(fault.Usage, "run", strings.Join(args, " "), err).WithHint("see volley --help")
	}
	if errors.Is(err, errEnded) {
		return 0
	}
	if errors.Is(err, errInterrupted) {
		cancel()
	}
	if errors.Is(err, errNotConverged) {
		fmt.Fprintln(os.Stderr, "volley: the result has not converged, as --must-converge wants")
		return exitNotConverged
	}
	return volley.ExitCode(ctx, err)
}

// exitNotConverged is the exit code of a result that does not meet --must-converge.
const exitNotConverged = 3

// errInterrupted ends a command whose work was stopped by the user after it
// was put in order.
var errInterrupted = errors.New("interrupted")

// errEnded ends a daemon that was asked to shut down.
var errEnded = errors.New("ended")

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "volley",
		Short: "Iterative machine learning on uneven clusters, without waiting for stragglers",
		Long: `Volley trains models in bulk-synchronous steps over partitioned data. Under
--sync absp a step ends as soon as the fastest task is done and enough rows
have been processed; what was left out comes first in the next step.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		err = errors.New(parsing.ReplaceAllString(err.Error(), ""))
		return fault.New(fault.Usage, "read the flags of", c.CommandPath(),
			err).WithHint("see " + c.CommandPath() + " --help")
	})
	root.AddCommand(initCommand(), loginCommand(), tokenCommand(), certsCommand(), driversCommand(), readyCommand(),
		supportCommand())
	root.AddCommand(runCommand(), tuneCommand(), predictCommand(), evaluateCommand(), importanceCommand(),
		calibrateCommand(), recommendCommand(), inspectCommand(), verifyCommand(), replayCommand(), reportCommand(),
		historyCommand(), topCommand(), pageCommand(),
		generateCommand(), versionCommand(), driverCommand(), executorCommand(), submitCommand(), jobsCommand(),
		jobCommand(), logsCommand(),
		cancelCommand(), executorsCommand(), newCommand(), labCommand())
	return root
}

// someArgs returns cobra.MinimumNArgs of one with a usage error.
func someArgs(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return nil
		}
		return fault.Newf(fault.Usage, "run", c.CommandPath(), "it takes %s, got none", what).
			WithHint("see " + c.CommandPath() + " --help")
	}
}

// exactArgs returns cobra.ExactArgs with a usage error.
func exactArgs(n int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return fault.Newf(fault.Usage, "run", c.CommandPath(), "it takes %s, got %d arguments", what, len(args)).
			WithHint("see " + c.CommandPath() + " --help")
	}
}
