package integration

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"time"

	"golang.org/x/sys/cpu"

	"github.com/volley-engine/volley/integration/lab"
)

// binary is the program under test, built once.
var binary string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "volley-test-*")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "volley")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s", "-o", binary, "../cmd/volley")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
		return 1
	}
	// what was built before need not be built again
	if out, err := exec.Command("go", "env", "GOCACHE").Output(); err == nil {
		os.Setenv("GOCACHE", strings.TrimSpace(string(out)))
	}
	os.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	if err := lab.Home(filepath.Join(dir, "home")); err != nil {
		panic(err)
	}
	return m.Run()
}

// volley runs the program and returns what it printed and its exit code.
func volley(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return command(t, nil, args...)
}

// command runs a command with more in its environment.
func command(t *testing.T, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute) // the first submit builds everything anew
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("volley %s does not end", strings.Join(args, " "))
	}
	if err != nil {
		code = cmd.ProcessState.ExitCode()
	}
	return out.String(), errs.String(), code
}

// result is what tests look at of the JSON object of a run.
type result struct {
	Iterations          int
	StoppedBy           string `json:"stopped_by"`
	Objective           float64
	Converged           bool
	TrainSeconds        float64 `json:"train_seconds"`
	SecondsPerIteration float64 `json:"seconds_per_iteration"`
	MeanShare           float64 `json:"mean_share"`
	DualDrift           float64 `json:"dual_drift"`
	Exchanges           int
	Metrics             map[string]float64
}

func run(t *testing.T, args ...string) result {
	t.Helper()
	out, errs, code := volley(t, append([]string{"run", "logistic", "--json"}, args...)...)
	if code != 0 {
		t.Fatalf("volley %s: exit %d\n%s", strings.Join(args, " "), code, errs)
	}
	var r result
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	return r
}

// generated is a data set made by the program itself.
func generated(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "train.libsvm")
	if _, errs, code := volley(t, "generate", "logistic", "--rows", "6000", "--features", "10", "--eps", "0.3", "--out",
		path); code != 0 {
		t.Fatal(errs)
	}
	return path
}

func shared(t *testing.T, path string) string {
	t.Helper()
	p := filepath.Join("..", "..", "shared", "data", path)
	if _, err := os.Stat(p); err != nil {
		t.Skipf("%s is not here", p)
	}
	return p
}

func modelBytes(t *testing.T, dir string) string {
	t.Helper()
	var all []byte
	for _, name := range []string{"model.json", "weights.arrow"} {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, raw...)
	}
	return string(all)
}

// TestOneModelToTheByte is SEMANTICS 10.3: executors, slots, ratio 1, pace,
// exchange and the clock do not show in a model.
func TestOneModelToTheByte(t *testing.T) {
	data := generated(t)
	var first string
	for i, flags := range [][]string{
		{"--executors", "1"}, {"--executors", "2"}, {"--executors", "5"}, {"--executors", "8"},
		{"--executors", "3", "--slots", "2"}, {"--sync", "absp", "--sync-ratio", "1", "--executors", "4"},
		{"--clock", "virtual", "--pace", "physical"}, {"--clock", "virtual", "--pace", "physical", "--exchange", "off"},
		{"--clock", "virtual", "--pace", "static:4,1,1", "--sync", "absp", "--sync-ratio", "1"},
	} {
		dir := filepath.Join(t.TempDir(), "model")
		run(t, append([]string{"--sync", "bsp", "--data", data, "--reg", "1e-3", "--max-iterations", "25", "--tol", "0",
			"--out", dir}, flags...)...)
		if got := modelBytes(t, dir); i == 0 {
			first = got
		} else if got != first {
			t.Errorf("%v gives another model", flags)
		}
	}
}

// TestEveryKernelPathGivesTheSameModel turns the vector code off.
func TestEveryKernelPathGivesTheSameModel(t *testing.T) {
	data := generated(t)
	var first string
	for _, c := range []struct {
		debug string
		here  bool
	}{{"", true}, {"cpu.avx512=off,cpu.avx512f=off", cpu.X86.HasAVX512F},
		{"cpu.avx2=off,cpu.fma=off", cpu.X86.HasAVX2}} {
		t.Run(c.debug, func(t *testing.T) {
			if !c.here {
				t.Skip("this CPU does not have what would be turned off")
			}
			dir := filepath.Join(t.TempDir(), "model")
			t.Setenv("GODEBUG", c.debug)
			run(t, "--data", data, "--sync", "bsp", "--max-iterations", "10", "--tol", "0", "--out", dir)
			got := modelBytes(t, dir)
			if first == "" {
				first = got
			}
			if got != first {
				t.Errorf("GODEBUG=%s gives another model", c.debug)
			}
		})
	}
}

func TestVerifyAndReplayEveryPolicy(t *testing.T) {
	data := generated(t)
	pace := []string{"--clock", "virtual", "--pace", "physical", "--splits", "48", "--solver", "nesterov"}
	for name, flags := range map[string][]string{
		"bsp": {"--sync", "bsp"}, "absp split": append([]string{"--sync", "absp"}, pace...),
		"absp rows":    append([]string{"--sync", "absp", "--weighting", "rows"}, pace...),
		"deadline":     append([]string{"--sync", "deadline"}, pace...),
		"literal":      append([]string{"--sync", "absp", "--exchange", "paper-literal"}, pace...),
		"cursor off":   append([]string{"--sync", "absp", "--cursor", "off"}, pace...),
		"batch":        {"--batch-fraction", "0.3", "--solver", "nesterov"},
		"sdca":         append(slices.Clone(pace), "--solver", "sdca", "--sync", "absp"),
		"sdca, steal":  append(slices.Clone(pace), "--solver", "sdca", "--sync", "steal"),
		"svrg":         append(slices.Clone(pace), "--solver", "svrg", "--sync", "absp"),
		"validation":   append([]string{"--validation", "0.2", "--patience", "1000", "--sync", "absp"}, pace...),
		"auto":         append([]string{"--sync", "auto"}, pace...),
		"steal":        append([]string{"--sync", "steal"}, pace...),
		"steal, batch": append([]string{"--sync", "steal", "--batch-fraction", "0.3"}, pace...),
		"real, uneven": {"--sync", "absp", "--pace", "static:2,1", "--pace-rate", "200000", "--solver", "nesterov"},
	} {
		log := filepath.Join(t.TempDir(), "run.log")
		run(t, append([]string{"--data", data, "--max-iterations", "30", "--tol", "0", "--event-log", log},
			flags...)...)
		if out, errs, code := volley(t, "verify", log); code != 0 || !strings.Contains(out, "facts checked") {
			t.Errorf("%s: verify: %s%s", name, out, errs)
		}
		want := "30 steps"
		if name == "newton" { // most passes are over all rows
			want = "every digest equal"
		}
		if out, errs, code := volley(t, "replay", log); code != 0 || !strings.Contains(out, want) {
			t.Errorf("%s: replay: %s%s", name, out, errs)
		}
	}
}

// ofSteps returns the lines of a log that are not of actions.
func ofSteps(lines []map[string]any) []map[string]any {
	return slices.DeleteFunc(slices.Clone(lines), func(l map[string]any) bool {
		return slices.Contains([]any{"plan", "action", "shuffle", "slots", "tables"}, l["event"])
	})
}

// TestTamperedLogsAreRefused changes a log in eight ways.
func TestTamperedLogsAreRefused(t *testing.T) {
	log := filepath.Join(t.TempDir(), "run.log")
	run(t, "--data", generated(t), "--max-iterations", "12", "--tol", "0", "--sync", "absp", "--exchange", "off",
		"--clock", "virtual", "--solver", "nesterov", "--pace", "static:3,1,1", "--splits", "6", "--event-log", log)
	raw, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(lines []map[string]any)
		want   string
	}{
		"a count":        {func(l []map[string]any) { add(l[5], "c", 1, 1) }, "invariant 10.1"},
		"a folded count": {func(l []map[string]any) { add(l[5], "folded", 1, -1) }, "invariant 10.1"},
		"a cursor":       {func(l []map[string]any) { add(l[6], "cursor", 1, 3) }, "invariant 10.2"},
		"an attempt":     {func(l []map[string]any) { add(l[6], "attempt", 0, -1) }, "invariant 10.4"},
		"a wait": {func(l []map[string]any) { l[5]["waits"].([]any)[0].(map[string]any)["took_ns"] = 1e18 },
			"invariant 10.9"},
		"a bound": {func(l []map[string]any) { l[5]["waits"].([]any)[0].(map[string]any)["bound_ns"] = 0 },
			"invariant 10.9"},
		"a share":       {func(l []map[string]any) { l[5]["share"] = 0.99 }, "derived figures"},
		"a step number": {func(l []map[string]any) { l[5]["step"] = 40 }, "wholeness"},
		"coverage":      {func(l []map[string]any) { cutShort(l[5]) }, "coverage"},
		"one digest":    {func(l []map[string]any) { l[5]["params"] = strings.Repeat("0", 64) }, "wholeness"},
	} {
		lines := parse(t, raw)
		c.change(ofSteps(lines))
		path := filepath.Join(t.TempDir(), "tampered.log")
		write(t, path, lines)
		out, errs, code := volley(t, "verify", path)
		if code != 1 || !strings.Contains(out, c.want) || !strings.Contains(out, "line ") {
			t.Errorf("%s: exit %d, %q, want it to name %q\n%s%s", name, code, first(out), c.want, out, errs)
		}
	}
	for name, text := range map[string]string{"cut short": string(raw[:len(raw)-30]),
		"no footer": string(raw[:bytes.LastIndexByte(raw[:len(raw)-1], '\n')+1])} {
		path := filepath.Join(t.TempDir(), "cut.log")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, code := volley(t, "verify", path); code != 1 {
			t.Errorf("%s: exit %d", name, code)
		}
	}
}

func first(s string) string { line, _, _ := strings.Cut(s, "\n"); return line }

func parse(t *testing.T, raw []byte) []map[string]any {
	t.Helper()
	var out []map[string]any
	for line := range bytes.Lines(raw) {
		var m map[string]any
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatal(err)
		}
		out = append(out, m)
	}
	return out
}

func write(t *testing.T, path string, lines []map[string]any) {
	t.Helper()
	var b bytes.Buffer
	for _, l := range lines {
		raw, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(raw, '\n'))
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

func add(line map[string]any, key string, i int, d float64) {
	a := line[key].([]any)
	a[i] = a[i].(float64) + d
}

// cutShort makes a step look as if it had processed far less than its ratio.
func cutShort(line map[string]any) {
	for _, key := range []string{"c", "folded"} {
		for i := range line[key].([]any) {
			line[key].([]any)[i] = 70
		}
	}
}

func TestPredictAndEvaluateAgree(t *testing.T) {
	data := generated(t)
	dir, out := filepath.Join(t.TempDir(), "model"), filepath.Join(t.TempDir(), "p.csv")
	r := run(t, "--data", data, "--out", dir)
	text, errs, code := volley(t, "evaluate", dir, "--data", data, "--json")
	if code != 0 {
		t.Fatal(errs)
	}
	var m map[string]float64
	if err := json.Unmarshal([]byte(text), &m); err != nil || m["accuracy"] != r.Metrics["accuracy"] ||
		m["auc"] != r.Metrics["auc"] {
		t.Errorf("%v, %v", m, r.Metrics)
	}
	if _, errs, code := volley(t, "predict", dir, "--data", data, "--out", out); code != 0 {
		t.Fatal(errs)
	}
	raw, err := os.ReadFile(out)
	if err != nil || bytes.Count(raw, []byte("\n")) != 6001 || !bytes.HasPrefix(raw, []byte("label,score\n")) {
		t.Errorf("%v, %d lines", err, bytes.Count(raw, []byte("\n")))
	}
}

func TestVirtualTimeIsExactAndRepeatable(t *testing.T) {
	data := generated(t)
	args := []string{"run", "logistic", "--json", "--data", data, "--clock", "virtual", "--pace", "multi-tenant:5",
		"--splits", "72",
		"--sync", "absp", "--max-iterations", "20"}
	a, _, _ := volley(t, args...)
	b, _, _ := volley(t, args...)
	if a != b || a == "" {
		t.Errorf("two runs differ:\n%s%s", a, b)
	}
}

func TestACheckpointedRunEndsLikeAnUndisturbedOne(t *testing.T) {
	data := generated(t)
	for _, how := range [][]string{{"logistic", "--solver", "nesterov"}, {"logistic", "--solver", "newton"},
		{"logistic", "--solver", "newton", "--sync", "absp"}, {"svm", "--solver", "interior"},
		{"svm", "--solver", "interior", "--sync", "absp"}} {
		dir := t.TempDir()
		whole, half := filepath.Join(dir, "whole"), filepath.Join(dir, "half")
		flags := append(how[1:], "--data", data, "--tol", "0", "--clock", "virtual", "--pace", "one-straggler",
			"--splits", "12", "--max-iterations", "8")
		runJob(t, how[0], append(flags, "--out", whole)...)
		ck := filepath.Join(dir, "ck")
		flags = append(flags, "--checkpoint-every", "2", "--checkpoint-dir", ck)
		runJob(t, how[0], flags...)
		removeNewest(t, ck)
		runJob(t, how[0], append(flags, "--resume", "--out", half)...)
		if modelBytes(t, whole) != modelBytes(t, half) {
			t.Errorf("%v: the resumed run has another model", how)
		}
	}
}

func TestSharesUnderStaticPace(t *testing.T) {
	data := generated(t)
	base := []string{"--data", data, "--clock", "virtual", "--executors", "6", "--splits", "6", "--exchange", "off",
		"--pace", "static:4,1,1,1,1,1", "--max-iterations", "30", "--tol", "0", "--solver", "nesterov"}
	bsp := run(t, append(base, "--sync", "bsp")...)
	for _, c := range []struct {
		ratio              string
		lo, hi, time, slip float64
	}{{"0.5", 0.50, 0.55, 0.40, 0.05}, {"0.8", 0.80, 0.85, 0.76, 0.06}} {
		r := run(t, append(base, "--sync", "absp", "--sync-ratio", c.ratio)...)
		if r.MeanShare < c.lo || r.MeanShare > c.hi {
			t.Errorf("ratio %s: share %v", c.ratio, r.MeanShare)
		}
		if rel := r.SecondsPerIteration / bsp.SecondsPerIteration; math.Abs(rel-c.time) > c.slip {
			t.Errorf("ratio %s: a step takes %v of BSP's", c.ratio, rel)
		}
	}
}

// TestTrainSecondsAreTheStepsOwn holds the time that a run reports against the
// steps in its event log: passes before and between them are left out.
func TestTrainSecondsAreTheStepsOwn(t *testing.T) {
	log := filepath.Join(t.TempDir(), "run.log")
	r := run(t, "--data", generated(t), "--max-iterations", "9", "--clock", "virtual", "--pace", "one-straggler",
		"--sync", "absp", "--solver", "nesterov", "--exchange", "off", "--splits", "12", "--event-log", log)
	raw, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	var sum float64
	for _, line := range parse(t, raw) {
		if line["event"] == "step" {
			p := line["phases_ns"].(map[string]any)
			sum += (p["compute"].(float64) + p["collect"].(float64)) / 1e9
		}
	}
	if math.Abs(sum-r.TrainSeconds) > 1e-6*sum {
		t.Errorf("%v s reported, the steps took %v", r.TrainSeconds, sum)
	}
}

func TestOutputsDoNotReplaceWhatTheyShouldNot(t *testing.T) {
	data := generated(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"a foreign directory": {"--out", dir, "--overwrite"},
		"the data":            {"--out", data, "--overwrite"},
		"the data by the log": {"--event-log", data},
	} {
		if _, errs, code := volley(t, append([]string{"run", "logistic", "--data", data}, args...)...); code != 2 {
			t.Errorf("%s: exit %d, %q", name, code, errs)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "thesis.txt")); err != nil {
		t.Error("it is gone")
	}
}

func TestColumnsAreMatchedByName(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	train := write("train.csv", "age,income,churned\n30,10,yes\n40,5,no\n35,9,yes\n50,2,no\n33,8,no\n")
	model := filepath.Join(dir, "model")
	run(t, "--data", train, "--label", "churned", "--reg", "0.1", "--out", model)
	want, _, _ := volley(t, "predict", model, "--data", write("same.csv", "age,income\n30,10\n40,5\n"), "--out", "-")
	got, _, _ := volley(t, "predict", model, "--data", write("swapped.csv", "income,age\n10,30\n5,40\n"), "--out", "-")
	if got != want || !strings.Contains(want, "yes,") {
		t.Errorf("%q, want %q", got, want)
	}
	if _, errs, code := volley(t, "evaluate", model, "--data",
		write("other.csv", "foo,bar,churned\n1,2,yes\n3,4,no\n")); code != 1 || !strings.Contains(errs, "foo") {
		t.Errorf("exit %d, %q", code, errs)
	}
}

// TestProbabilitiesOfClasses: those of a row sum to one, the predicted class is the most probable, and the score that
// predict writes is its probability.
func TestProbabilitiesOfClasses(t *testing.T) {
	data := filepath.Join(t.TempDir(), "three.csv")
	var text strings.Builder
	text.WriteString("kind,x,y\n")
	for i := range 300 {
		fmt.Fprintf(&text, "%s,%d,%d\n", []string{"a b", `"c,d"`, "e"}[i%3], (i%3)*5+i%7, (i%3)*-3+i%5)
	}
	if err := os.WriteFile(data, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, job := range []string{"softmax", "mlp", "svm"} {
		dir, out := filepath.Join(t.TempDir(), "model"), filepath.Join(t.TempDir(), "p.csv")
		args := []string{"run", job, "--data", data, "--label", "kind", "--out", dir}
		if job == "svm" {
			args = append(args, "--positive", "e")
		}
		if _, errs, code := volley(t, args...); code != 0 {
			t.Fatalf("%s: %s", job, errs)
		}
		_, errs, code := volley(t, "predict", dir, "--data", data, "--out", out, "--probabilities")
		if job == "svm" {
			if code != 2 || !strings.Contains(errs, "softmax") {
				t.Errorf("svm: exit %d: %s", code, errs)
			}
			continue
		}
		if code != 0 {
			t.Fatalf("%s: %s", job, errs)
		}
		f, err := os.Open(out)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := csv.NewReader(f).ReadAll()
		f.Close()
		if err != nil || len(lines) != 301 || strings.Join(lines[0], "|") !=
			"label|probability of a b|probability of c,d|probability of e" {
			t.Fatalf("%s: %v, %d lines, the first %q", job, err, len(lines), lines[0])
		}
		for _, line := range lines[1:] {
			sum, most, best := 0.0, -1.0, ""
			for k, field := range line[1:] {
				p, err := strconv.ParseFloat(field, 64)
				if err != nil {
					t.Fatal(err)
				}
				if sum += p; p > most {
					most, best = p, []string{"a b", "c,d", "e"}[k]
				}
			}
			if math.Abs(sum-1) > 1e-12 || best != line[0] {
				t.Errorf("%s: %q", job, line)
			}
		}
	}
}
