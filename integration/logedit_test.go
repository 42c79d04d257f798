package integration

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// eventLog is an event log whose lines are edited; its footer is made to agree with
// them when it is written.
type eventLog struct {
	t     *testing.T
	lines []map[string]any
}

// readLog reads a log with its numbers as they are written.
func readLog(t *testing.T, path string) *eventLog {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	l := &eventLog{t: t}
	for line := range bytes.Lines(raw) {
		l.lines = append(l.lines, value(t, string(line)).(map[string]any))
	}
	return l
}

// value is what a text of JSON stands for.
func value(t *testing.T, text string) (v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return v
}

// write seals the log and writes it: its footer counts what is there and has its digest.
func (l *eventLog) write(path string) {
	l.t.Helper()
	var b bytes.Buffer
	footer := l.lines[len(l.lines)-1]
	body := l.lines[:len(l.lines)-1]
	for _, line := range body {
		b.Write(encoded(l.t, line))
	}
	sum := sha256.Sum256(b.Bytes())
	footer["sha256"], footer["lines"] = hex.EncodeToString(sum[:]), len(body)
	footer["steps"], footer["evaluations"] = len(l.where("steps")), len(l.where("evals"))
	b.Write(encoded(l.t, footer))
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		l.t.Fatal(err)
	}
}

func encoded(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return append(raw, '\n')
}

// edit carries out edits, separated by semicolons:
//
//	WHERE: PATH = JSON       sets a value, also one that is not there
//	WHERE: PATH + NUMBER     where there is one; likewise * and delete
//	drop WHERE, twice WHERE  takes lines out, or repeats them
//	after N                  takes everything after step N out, but the footer
//	renumber                 numbers the steps from 1 again
//	rederive                 makes cursors, share and neff what the counts give
//
// WHERE is a kind of line (header, footer, steps, evals, pack, resume), one of them by
// number from 1 (step 4, eval 2), last (step), final (evaluation), or the first step
// with something (with moves). In a path * is every element of an array.
func (l *eventLog) edit(script string) {
	l.t.Helper()
	for _, command := range strings.Split(script, ";") {
		command = strings.TrimSpace(command)
		if where, change, ok := strings.Cut(command, ": "); ok {
			l.change(where, change)
			continue
		}
		verb, where, _ := strings.Cut(command, " ")
		l.rearrange(verb, where)
	}
}

func (l *eventLog) rearrange(verb, where string) {
	l.t.Helper()
	switch verb {
	case "drop", "twice":
		l.repeat(l.where(where), map[string]int{"drop": 0, "twice": 2}[verb])
	case "after":
		l.cutAfter(where)
	case "renumber":
		for i, at := range l.where("steps") {
			l.lines[at]["step"], l.lines[at]["iteration"] = number(i+1), number(i+1)
		}
	case "rederive":
		l.rederive()
	default:
		l.t.Fatalf("no such edit: %q", verb)
	}
}

// repeat repeats some lines.
func (l *eventLog) repeat(at []int, times int) {
	some := map[int]bool{}
	for _, i := range at {
		some[i] = true
	}
	var out []map[string]any
	for i, line := range l.lines {
		for n := range 2 {
			if n == 0 && !some[i] || some[i] && n < times {
				out = append(out, line)
			}
		}
	}
	l.lines = out
}

func (l *eventLog) cutAfter(step string) {
	at := l.where("step " + step)[0]
	l.lines = append(l.lines[:at+1:at+1], l.lines[len(l.lines)-1])
}

// where are the lines that a word or two stand for; there must be some.
func (l *eventLog) where(what string) (at []int) {
	l.t.Helper()
	kind, which, _ := strings.Cut(what, " ")
	kinds := map[string]string{"header": "header", "footer": "footer", "steps": "step", "step": "step", "last": "step",
		"with":  "step",
		"evals": "evaluation", "eval": "evaluation", "final": "evaluation", "pack": "pack", "resume": "resume"}
	for i, line := range l.lines {
		if line["event"] == kinds[kind] && (kind != "with" || present(line[which])) {
			at = append(at, i)
		}
	}
	n, err := strconv.Atoi(which)
	switch {
	case kind == "steps" || kind == "evals":
		return at
	case len(at) == 0 || err == nil && n > len(at):
		l.t.Fatalf("the log has no %s", what)
	case kind == "last" || kind == "final":
		return at[len(at)-1:]
	case err == nil:
		return at[n-1 : n]
	}
	return at[:1]
}

// present reports whether a value is there and says something.
func present(v any) bool {
	list, isList := v.([]any)
	return v != nil && v != false && fmt.Sprint(v) != "0" && (!isList || len(list) > 0)
}

// change carries out one change of values.
func (l *eventLog) change(where, change string) {
	l.t.Helper()
	words := strings.SplitN(change, " ", 3)
	operand := ""
	if len(words) == 3 {
		operand = words[2]
	}
	changed := 0
	for _, at := range l.where(where) {
		changed += l.set(l.lines[at], strings.Split(words[0], "."), words[1], operand)
	}
	if changed == 0 {
		l.t.Fatalf("%s: %s changes nothing", where, change)
	}
}

// set changes what lies at a path below v, and says how often.
func (l *eventLog) set(v any, path []string, op, operand string) (changed int) {
	l.t.Helper()
	if list, ok := v.([]any); ok && path[0] == "*" {
		for i := range list {
			changed += l.set(v, append([]string{strconv.Itoa(i)}, path[1:]...), op, operand)
		}
		return changed
	}
	below, there := child(v, path[0])
	if len(path) > 1 {
		if !there {
			return 0
		}
		return l.set(below, path[1:], op, operand)
	}
	if !there && op != "=" {
		return 0
	}
	put(v, path[0], l.operated(below, op, operand))
	return 1
}

func child(v any, key string) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		below, there := v[key]
		return below, there
	case []any:
		if i, err := strconv.Atoi(key); err == nil && i < len(v) {
			return v[i], true
		}
	}
	return nil, false
}

// put puts a value into an object or an array; nil takes it out of an object.
func put(into any, key string, v any) {
	switch into := into.(type) {
	case map[string]any:
		if into[key] = v; v == nil {
			delete(into, key)
		}
	case []any:
		i, _ := strconv.Atoi(key)
		into[i] = v
	}
}

func (l *eventLog) operated(v any, op, operand string) any {
	l.t.Helper()
	switch op {
	case "delete":
		return nil
	case "=":
		return value(l.t, operand)
	case "+":
		return number(float(v) + float(value(l.t, operand)))
	case "*":
		return number(float(v) * float(value(l.t, operand)))
	}
	l.t.Fatalf("no such change: %q", op)
	return nil
}

// number writes a number as a log does, whole ones without a point.
func number[N int | float64](n N) json.Number {
	return json.Number(strconv.FormatFloat(float64(n), 'f', -1, 64))
}

func float(v any) float64 {
	f, _ := v.(json.Number).Float64()
	return f
}

// rederive makes of every step's counts what follows from them: where the next one
// starts, its share, its N_eff. Steps with weights or entries are not for it.
func (l *eventLog) rederive() {
	n := l.lines[0]["n"].([]any)
	merged := make([]float64, len(n))
	var all float64
	for _, rows := range n {
		all += float(rows)
	}
	for _, at := range l.where("steps") {
		s := l.lines[at]
		var rows, there, inverse float64
		for i, c := range s["c"].([]any) {
			s["cursor"].([]any)[i] = number(float64(int64(merged[i]) % int64(float(n[i]))))
			merged[i] += float(c)
			if rows += float(c); float(c) > 0 {
				there += float(n[i])
			}
		}
		for i, c := range s["c"].([]any) {
			if w := float(n[i]) / there; float(c) > 0 {
				inverse += w * w / float(c)
			}
		}
		s["share"], s["neff"] = number(rows/all), number(1/inverse)
	}
}
