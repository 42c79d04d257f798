package volley

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/spf13/pflag"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/host"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/rdd"
)

// Exit codes of programs and commands.
const (
	ExitFailed      = host.ExitFailed
	ExitUsage       = host.ExitUsage
	ExitInterrupted = host.ExitInterrupted
	ExitLost        = wire.ExitLost // of a job's process that has lost the cluster's driver: it is started again
)

// Main runs a program embedded and exits: the engine's flags come first, the
// program's, which are the fields of its args struct, after "--". A field
// Input is the flag --input; tags `usage` and `default` describe it.
func Main[A, P any](name string, build func(*rdd.Graph, A) P,
	run func(ctx context.Context, s *rdd.Session, a A, p P) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := mainWith(ctx, name, os.Args[1:], build, run)
	code := ExitCode(ctx, err)
	stop()
	os.Exit(code)
}

// ExitCode prints an error, once, and chooses the exit code for it. In a job's process it
// also reports the end to the cluster's driver: call it last.
func ExitCode(ctx context.Context, err error) int {
	return host.SayEnd(wire.ThisProcess(), exitCode(ctx, err), err)
}

func exitCode(ctx context.Context, err error) int {
	switch {
	case err == nil && ctx.Err() == nil, errors.Is(err, pflag.ErrHelp):
		return 0
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "volley: interrupted")
		return ExitInterrupted
	}
	fmt.Fprintf(os.Stderr, "volley: %v\n", err)
	if fault.KindOf(err) == fault.Usage {
		return ExitUsage
	}
	return ExitFailed
}

func mainWith[A, P any](ctx context.Context, name string, argv []string, build func(*rdd.Graph, A) P,
	run func(ctx context.Context, s *rdd.Session, a A, p P) error) error {
	var args A
	engine := &EngineFlags{}
	own, theirs := pflag.NewFlagSet(name, pflag.ContinueOnError), pflag.NewFlagSet(name, pflag.ContinueOnError)
	engine.Register(own)
	out := own.String("out", "", "directory for what the program saves")
	if err := registerArgs(theirs, &args); err != nil {
		return err
	}
	help := func() {
		fmt.Fprintf(os.Stderr, "%s [engine flags] -- [program flags]\n\n"+
			"Program flags, after --:\n%s\nEngine flags:\n%s", name, theirs.FlagUsages(), own.FlagUsages())
	}
	own.Usage, theirs.Usage = help, help
	mine, rest := cutArgs(argv)
	if err := parseFlags(own, mine, theirs, "the program's flags go after --"); err != nil {
		return err
	}
	if err := parseFlags(theirs, rest, own, "the engine's flags go before --"); err != nil {
		return err
	}
	if err := noPositional(own.Args(), theirs.Args()); err != nil {
		return err
	}
	if err := environment(own); err != nil {
		return err
	}
	cfg, err := engine.Config()
	if err != nil {
		return err
	}
	cfg.OutDir = *out
	if err := cfg.OnCluster(wire.ThisProcess()); err != nil {
		return err
	}
	_, err = Run(ctx, cfg, name, args, build, func(ctx context.Context, s *rdd.Session, a A, p P) (string, error) {
		return "end", run(ctx, s, a, p)
	})
	return err
}

// parseFlags parses arguments; a flag that is unknown may be one of the others.
func parseFlags(fs *pflag.FlagSet, args []string, others *pflag.FlagSet, where string) error {
	err := fs.Parse(args)
	if err == nil || errors.Is(err, pflag.ErrHelp) {
		return err
	}
	hint := "see --help"
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && others.Lookup(unknown.GetSpecifiedName()) != nil {
		hint = where
	}
	return fault.New(fault.Usage, "read the flags of", fs.Name(), err).WithHint(hint)
}

// noPositional refuses arguments that are not flags, since a program cannot see them.
func noPositional(own, theirs []string) error {
	switch {
	case len(own) > 0:
		return fault.Newf(fault.Usage, "read", own[0], "it is not a flag").WithHint("the program's flags go after --")
	case len(theirs) > 0:
		return fault.Newf(fault.Usage, "read", theirs[0], "it is not a flag").WithHint("see --help")
	}
	return nil
}

// environment fills in the engine's flags that were not given from variables
// such as VOLLEY_DATA_DIR.
func environment(fs *pflag.FlagSet) (err error) {
	fs.VisitAll(func(f *pflag.Flag) {
		v, ok := os.LookupEnv("VOLLEY_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_")))
		if !ok || f.Changed || err != nil {
			return
		}
		if serr := fs.Set(f.Name, v); serr != nil {
			err = fault.New(fault.Usage, "read", "the environment's "+f.Name, serr)
		}
	})
	return err
}

// cutArgs separates the engine's arguments from the program's.
func cutArgs(argv []string) (engine, program []string) {
	for i, a := range argv {
		if a == "--" {
			return argv[:i], argv[i+1:]
		}
	}
	return argv, nil
}

// registerArgs declares a flag for each exported field of a struct.
func registerArgs(fs *pflag.FlagSet, args any) error {
	v := reflect.ValueOf(args).Elem()
	if v.Kind() != reflect.Struct {
		return fault.Newf(fault.UserCode, "read", "the program's arguments", "they are %v, not a struct", v.Type())
	}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		name, usage, def := flagName(field.Name), field.Tag.Get("usage"), field.Tag.Get("default")
		if fs.Lookup(name) != nil {
			return fault.Newf(fault.UserCode, "read", "the program's arguments",
				"two fields are the flag --%s, one of them %s", name, field.Name)
		}
		switch p := v.Field(i).Addr().Interface().(type) {
		case *string:
			fs.StringVar(p, name, def, usage)
		case *int:
			fs.IntVar(p, name, 0, usage)
		case *int64:
			fs.Int64Var(p, name, 0, usage)
		case *uint64:
			fs.Uint64Var(p, name, 0, usage)
		case *float64:
			fs.Float64Var(p, name, 0, usage)
		case *bool:
			fs.BoolVar(p, name, false, usage)
		case *time.Duration:
			fs.DurationVar(p, name, 0, usage)
		case *[]string:
			fs.StringSliceVar(p, name, nil, usage)
		default:
			return fault.Newf(fault.UserCode, "read", "the program's arguments", "field %s is %v, which no flag can be",
				field.Name, field.Type)
		}
		if def != "" {
			if err := setDefault(fs.Lookup(name), def); err != nil {
				return fault.New(fault.UserCode, "read", "the default of field "+field.Name, err)
			}
		}
	}
	return nil
}

// setDefault gives a flag its default. A list is replaced, not set: once set, it would be appended to.
func setDefault(f *pflag.Flag, def string) error {
	f.DefValue = def
	if list, ok := f.Value.(pflag.SliceValue); ok {
		values, err := csv.NewReader(strings.NewReader(def)).Read()
		if err != nil {
			return err
		}
		return list.Replace(values)
	}
	return f.Value.Set(def)
}

// flagName returns a field's name in lower case, its words joined by dashes: UserID is user-id.
func flagName(field string) string {
	var b strings.Builder
	name := []rune(field)
	for i, r := range name {
		begins := i+1 < len(name) && unicode.IsLower(name[i+1]) || i > 0 && !unicode.IsUpper(name[i-1])
		if i > 0 && unicode.IsUpper(r) && begins {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
