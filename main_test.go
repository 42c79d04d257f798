package volley

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/rdd"
)

func TestFlagNames(t *testing.T) {
	for field, want := range map[string]string{"Input": "input", "MaxRounds": "max-rounds", "N": "n", "K8s": "k8s",
		"URL": "url", "UserID": "user-id", "HTTPPort": "http-port", "Top10Pages": "top10-pages", "Größe": "größe"} {
		if got := flagName(field); got != want {
			t.Errorf("%s is --%s, want --%s", field, got, want)
		}
	}
}

type allKinds struct {
	Text    string `usage:"a text" default:"abc"`
	Number  int    `default:"-3"`
	Long    int64
	Natural uint64 `default:"7"`
	Share   float64
	Flag    bool          `default:"true"`
	Wait    time.Duration `default:"2s"`
	Names   []string      `default:"a,b"`
	hidden  int
}

func TestArgumentsByTheirTypes(t *testing.T) {
	for _, c := range []struct {
		argv string
		want allKinds
	}{
		{"", allKinds{Text: "abc", Number: -3, Natural: 7, Flag: true, Wait: 2 * time.Second,
			Names: []string{"a", "b"}}},
		{"--text= --number=4 --long=-5 --natural=0 --share=0.5 --flag=false --wait=1ms --names=c",
			allKinds{Number: 4, Long: -5, Share: 0.5, Wait: time.Millisecond, Names: []string{"c"}}},
		{"--names=c --names=d,e", allKinds{Text: "abc", Number: -3, Natural: 7, Flag: true, Wait: 2 * time.Second,
			Names: []string{"c", "d", "e"}}},
	} {
		var got allKinds
		fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
		if err := registerArgs(fs, &got); err != nil {
			t.Fatal(err)
		}
		if fs.Lookup("hidden") != nil || fs.Lookup("text").Usage != "a text" || fs.Lookup("text").DefValue != "abc" ||
			fs.Lookup("number").Changed {
			t.Errorf("%s", fs.FlagUsages())
		}
		if err := fs.Parse(strings.Fields(c.argv)); err != nil {
			t.Fatal(err)
		}
		names := got.Names
		got.Names, c.want.hidden = nil, 0
		want := c.want.Names
		c.want.Names = nil
		if !slices.Equal(names, want) || !equalKinds(got, c.want) {
			t.Errorf("%s: %+v %v", c.argv, got, names)
		}
	}
}

func equalKinds(a, b allKinds) bool {
	return a.Text == b.Text && a.Number == b.Number && a.Long == b.Long && a.Natural == b.Natural &&
		a.Share == b.Share && a.Flag == b.Flag && a.Wait == b.Wait && a.hidden == b.hidden
}

// TestArgumentsThatNoFlagCanBe are errors of the program, not of its user.
func TestArgumentsThatNoFlagCanBe(t *testing.T) {
	for named, args := range map[string]any{
		"not a struct": new(int),
		"Scores":       &struct{ Scores map[string]int }{},
		"Small":        &struct{ Small int8 }{},
		"default": &struct {
			N int `default:"x"`
		}{},
		"--url, one of them Url": &struct{ URL, Url string }{},
	} {
		err := registerArgs(pflag.NewFlagSet("test", pflag.ContinueOnError), args)
		if fault.KindOf(err) != fault.UserCode || !strings.Contains(err.Error(), named) {
			t.Errorf("%s: %v", named, err)
		}
	}
}

func TestEngineAndProgramArguments(t *testing.T) {
	for _, c := range []struct{ argv, engine, program string }{
		{"", "", ""},
		{"--slots 2", "--slots 2", ""},
		{"-- --input x", "", "--input x"},
		{"--slots 2 -- --input x -- y", "--slots 2", "--input x -- y"},
	} {
		engine, program := cutArgs(strings.Fields(c.argv))
		if strings.Join(engine, " ") != c.engine || strings.Join(program, " ") != c.program {
			t.Errorf("%q: %v and %v", c.argv, engine, program)
		}
	}
}

func TestTheEnvironmentFillsFlags(t *testing.T) {
	t.Setenv("VOLLEY_MAX_WAIT", "7s")
	t.Setenv("VOLLEY_SLOTS", "5")
	f, fs := &EngineFlags{}, pflag.NewFlagSet("engine", pflag.ContinueOnError)
	f.Register(fs)
	if err := fs.Parse([]string{"--slots", "2"}); err != nil {
		t.Fatal(err)
	}
	if err := environment(fs); err != nil || f.maxWait != 7*time.Second || f.slots != 2 {
		t.Errorf("%v, slots %d, %v", f.maxWait, f.slots, err)
	}
	t.Setenv("VOLLEY_EXECUTORS", "many")
	refused(t, environment(fs), "executors")
}

type inputArgs struct{ Input string }

// mainOf runs a program that must not get as far as its plan.
func mainOf(t *testing.T, argv ...string) error {
	return mainWith(context.Background(), "test", argv, func(*rdd.Graph, inputArgs) int {
		t.Error("the plan is built")
		return 0
	}, func(context.Context, *rdd.Session, inputArgs, int) error { return nil })
}

func TestCommandLinesThatAreRefused(t *testing.T) {
	for _, c := range []struct{ argv, named string }{
		{"--input x", "program's flags go after --"},
		{"-- --slots 2", "engine's flags go before --"},
		{"-- --inptu x", "inptu"},
		{"--slots x", "slots"},
		{"--slots -2", "slots"},
		{"x.txt", "x.txt"},
		{"--slots 2 -- x.txt", "x.txt"},
	} {
		err := mainOf(t, strings.Fields(c.argv)...)
		t.Run(c.argv, func(t *testing.T) { refused(t, err, c.named) })
	}
	for _, argv := range [][]string{{"--help"}, {"--", "--help"}} {
		if err := mainOf(t, argv...); !errors.Is(err, pflag.ErrHelp) {
			t.Errorf("%v: %v", argv, err)
		}
	}
}

func TestExitCodes(t *testing.T) {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range []struct {
		ctx  context.Context
		err  error
		want int
	}{
		{context.Background(), nil, 0},
		{context.Background(), pflag.ErrHelp, 0},
		{context.Background(), errors.New("it failed"), ExitFailed},
		{context.Background(), fault.Newf(fault.Usage, "use", "--x", "no"), ExitUsage},
		{cancelled, nil, ExitInterrupted},
		{cancelled, errors.New("it failed"), ExitInterrupted},
	} {
		if got := exitCode(c.ctx, c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
}

// TestAPlanThatPanics is the program's error.
func TestAPlanThatPanics(t *testing.T) {
	_, _, err := buildPlan(0, func(*rdd.Graph, int) int { panic("no plan") })
	if fault.KindOf(err) != fault.UserCode || !strings.Contains(err.Error(), "no plan") {
		t.Error(err)
	}
}

// TestAProgramThatPanics: its loop ends with an error that says what happened, and where.
func TestAProgramThatPanics(t *testing.T) {
	_, err := Run(context.Background(), Config{DataDir: t.TempDir()}, "panics", struct{}{},
		func(g *rdd.Graph, _ struct{}) rdd.Action[int64] { return rdd.Count(rdd.Range(g, 0, 3, 1)) },
		func(context.Context, *rdd.Session, struct{}, rdd.Action[int64]) (string, error) {
			panic("nil map of the loop")
		})
	if fault.KindOf(err) != fault.UserCode || !strings.Contains(err.Error(), "nil map") ||
		!strings.Contains(err.Error(), "main_test.go") {
		t.Errorf("%v", err)
	}
}
