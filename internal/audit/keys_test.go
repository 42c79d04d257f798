package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/volley-engine/volley/driver"
)

// TestALineSaysTheSameToEveryReader: none of its keys is there twice, or in another case.
func TestALineSaysTheSameToEveryReader(t *testing.T) {
	for line, want := range map[string]string{
		`{"event":"step","cut":true,"values":{"f":1,"F":2}}`:          "",
		`{"event":"header","args":{"Reg":1,"In":[{"A":1},{"A":2}]}}`:  "",
		`{"event":"header","args":{"Reg":1,"Reg":2}}`:                 `"Reg" twice`,
		`{"event":"step","cut":false,"cut":true}`:                     `"cut" twice`,
		`{"event":"step","cut":false,"Cut":true}`:                     `"Cut"`,
		`{"event":"step","CUT":true}`:                                 `"CUT"`,
		`{"event":"step","waits":[{"for":"x"},{"for":"x","For":""}]}`: `"For"`,
		`{"event":"step","values":{"f":1,"f":2}}`:                     `"f" twice`,
		`{"event":"footer","stopped_by":"x","Stopped_by":"y"}`:        `"Stopped_by"`,
		`{"event":"step","miſſing":[1]}`:                              `"miſſing"`,
		`{"event":"step","mi\u017fsing":[1],"missing":[]}`:            `"miſsing"`,
		`{"event":"step","cut":true}` + "\u00a0":                      "it is not JSON",
		`{"event":"step","cut":true}` + "\v":                          "it is not JSON",
		`{"event":"step","cut":true}` + " \t\r":                       "",
		`{"event":"step","cut":true}{}`:                               "it is not JSON",
		`{"event":"slots","executors":[{"spans":[[1,1]]}]}`:           "a span has 6 numbers, and 2 are written",
	} {
		l := &Log{Path: "log"}
		number := 1
		if !strings.Contains(line, "header") {
			l.Header, number = &driver.LogHeader{}, 2
		}
		err := l.take(number, []byte(line+"\n"), "")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}

// keysByTokens is plainKeys by a decoder of the library, token by token.
func keysByTokens(raw []byte, event string) error {
	k := keyReader{json.NewDecoder(bytes.NewReader(raw))}
	k.dec.UseNumber()
	return k.value(event, false)
}

type keyReader struct{ dec *json.Decoder }

// value reads a value, which is part of something.
func (k keyReader) value(of string, own bool) error {
	t, err := k.dec.Token()
	switch {
	case err != nil:
		return err
	case t == json.Delim('{'):
		return k.object(of, own)
	case t == json.Delim('['):
		return k.list(of, own)
	}
	return nil
}

func (k keyReader) list(of string, own bool) error {
	for k.dec.More() {
		if err := k.value(of, own); err != nil {
			return err
		}
	}
	_, err := k.dec.Token()
	return err
}

func (k keyReader) object(of string, own bool) error {
	seen := map[string]bool{}
	for k.dec.More() {
		t, err := k.dec.Token()
		if err != nil {
			return err
		}
		key, _ := t.(string)
		if seen[key] {
			return fmt.Errorf("%s has the key %q twice", of, key)
		}
		if !own && (key != strings.ToLower(key) || strings.ContainsFunc(key, func(c rune) bool { return c > 127 })) {
			return fmt.Errorf("unknown key %[2]q in %[1]s", of, key)
		}
		seen[key] = true
		if err := k.value(key, own || ownKeys[key]); err != nil {
			return err
		}
	}
	_, err := k.dec.Token()
	return err
}

// TestKeysAreThoseThatADecoderFinds: of lines of logs, and of any JSON, the same is refused for the same reason.
func TestKeysAreThoseThatADecoderFinds(t *testing.T) {
	t.Parallel()
	var lines [][]byte
	logs, err := filepath.Glob("../history/testdata/*.log")
	if err != nil || len(logs) == 0 {
		t.Fatal(err, logs)
	}
	for _, path := range logs {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, bytes.SplitAfter(raw, []byte("\n"))...)
	}
	rng := rand.New(rand.NewPCG(4, 2))
	var many bytes.Buffer // keys, of which the last is there twice
	for k := range 1000 {
		fmt.Fprintf(&many, `"k%d":1,`, k)
	}
	lines = append(lines, []byte("{"+many.String()+`"k":1}`), []byte("{"+many.String()+`"k999":1}`))
	for range 20_000 {
		lines = append(lines, anyJSON(rng, 4, nil))
	}
	refused := 0
	for _, line := range lines {
		if !json.Valid(line) {
			continue
		}
		got, want := fmt.Sprint(plainKeys(line, "step")), fmt.Sprint(keysByTokens(line, "step"))
		if got != want {
			t.Fatalf("%s: %s, by a decoder %s", line, got, want)
		}
		if want != "<nil>" {
			refused++
		}
	}
	if refused < 1000 {
		t.Errorf("only %d lines are refused", refused)
	}
}

// anyJSON appends a value.
func anyJSON(rng *rand.Rand, deep int, out []byte) []byte {
	texts := []string{`"a"`, `"b"`, `"A"`, `"args"`, `"values"`, `"a\"b"`, `"\\"`, `"\u0041"`, `"{"`, `"]"`, `""`, `" , "`}
	space := []string{"", "", " ", "\t"}[rng.IntN(4)]
	n, kind := rng.IntN(4), rng.IntN(5)
	switch {
	case deep == 0 || kind == 0:
		return append(out, texts[rng.IntN(len(texts))]...)
	case kind == 1:
		return append(out, []string{"1", "-2.5e3", "null", "true"}[n]...)
	case kind == 2:
		out = append(out, '[')
		for i := range n {
			if i > 0 {
				out = append(append(out, ','), space...)
			}
			out = anyJSON(rng, deep-1, out)
		}
		return append(out, ']')
	}
	out = append(append(out, '{'), space...)
	for i := range n {
		if i > 0 {
			out = append(append(out, ','), space...)
		}
		out = append(append(append(out, texts[rng.IntN(len(texts))]...), space...), ':')
		out = anyJSON(rng, deep-1, append(out, space...))
	}
	return append(out, '}')
}
