package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const fixture = "internal/mutate/testdata/fixture"

// TestTheFixture holds what becomes of every mutant of the fixture against testdata/outcomes.txt;
// UPDATE=1 writes that anew.
func TestTheFixture(t *testing.T) {
	before, err := os.ReadFile("testdata/fixture/fixture.go")
	if err != nil {
		t.Fatal(err)
	}
	all, err := mutate("../..", target{dir: fixture}, 2, 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, o := range all {
		fate := "survives"
		if o.killed {
			fate = "killed"
		}
		fmt.Fprintf(&b, "%s %d:%d %s %s: %s -> %s%s\n", fate, o.line, o.col, o.fn, o.kind, o.before, o.after,
			o.remark())
	}
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile("testdata/outcomes.txt", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/outcomes.txt")
	if err != nil || b.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s\n%v", b.String(), want, err)
	}
	if after, err := os.ReadFile("testdata/fixture/fixture.go"); err != nil || string(after) != string(before) {
		t.Errorf("the tree was changed (%v)", err)
	}
	if _, err := os.Stat("testdata/fixture/testdata"); err == nil {
		t.Error("a property wrote into the tree what had failed")
	}
}

func TestWhatIsArguedNeedsAReasonAndASurvivor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "argued.txt")
	put := func(text string) (map[string]string, error) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return readArgued(path)
	}
	if _, err := put("p/a.go | f | boundary | a < b -> a <= b\n"); err == nil {
		t.Error("an argument without a reason is taken")
	}
	if _, err := put("\twhy\n"); err == nil {
		t.Error("a reason without a mutant is taken")
	}
	reasons, err := put("# for the reader\np/a.go | f | boundary | a < b -> a <= b\n\tboth ways\n\tadd " +
		"nothing\n\np/a.go | g | x | 1 -> 2\n\tno\nq/b.go | g | x | 1 -> 2\n\tno\n")
	why := reasons["p/a.go | f | boundary | a < b -> a <= b"]
	if err != nil || len(reasons) != 3 || why != "both ways add nothing" {
		t.Fatal(reasons, err)
	}
	edge := &mutant{kind: "boundary", file: "p/a.go", fn: "f", before: "a < b", after: "a <= b"}
	other := *edge
	other.nth = 2
	s := summarize("p", []outcome{{mutant: edge}, {mutant: &other}, {mutant: &mutant{}, killed: true}}, reasons)
	if s.total != 3 || s.killed != 1 || len(s.argued) != 1 || len(s.survivors) != 1 || s.share() != 50 {
		t.Errorf("%+v", s)
	}
	if !slices.Equal(s.stale, []string{"p/a.go | g | x | 1 -> 2"}) {
		t.Errorf("stale: %q", s.stale)
	}
}

func TestASectionIsReplacedAndTheOthersStay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mutants.md")
	for _, s := range []summary{{dir: "b", total: 4, killed: 3}, {dir: "a", total: 1},
		{dir: "b", total: 2, killed: 2}} {
		if err := s.write(path); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	want := preface + "\n## a\n\n0 of 1 killed, 0 argued: 0.0 %\n\n## b\n\n2 of 2 killed, 0 argued: 100.0 %\n"
	if err != nil || string(got) != want {
		t.Errorf("%s (%v)", got, err)
	}
}

func TestAMutantIsRunAgainstTheTestsThatComeByIt(t *testing.T) {
	saw := func(name string, took time.Duration, killed int64, ids ...int) testcase {
		c := testcase{name, took, make([]byte, 3), new(atomic.Int64)}
		c.killed.Store(killed)
		for _, id := range ids {
			c.seen[id] = 1
		}
		return c
	}
	tests := []testcase{saw("A", time.Second, 9, 1), saw("B", 1, 0, 1, 2), saw("C", time.Second/2, 0, 1),
		saw("D", 3, 5, 1), saw("E", 1, 7), saw("F", 2, 0, 1)}
	var got string
	for _, c := range order(tests, 1) {
		got += c.name
	}
	if got != "DBFCA" {
		t.Error(got)
	}
}

func TestOnlyPackagesThatDecideAreChosen(t *testing.T) {
	got, err := choose("abss,./driver/")
	if err != nil || len(got) != 2 || got[1].dir != "driver" {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := choose("storage/pack"); err == nil {
		t.Error("storage/pack is taken")
	}
}

// TestWhatDecidesCanBeMutated: whatever is written in the packages that decide, their mutants compile, and hardly any
// is left out.
func TestWhatDecidesCanBeMutated(t *testing.T) {
	if testing.Short() {
		t.Skip("six packages are compiled")
	}
	for _, target := range targets {
		p, err := load("../..", target.dir, target.files)
		if err != nil {
			t.Fatal(err)
		}
		f := find(p)
		if _, err := settle(p, f); err != nil {
			t.Errorf("%s: %v", target.dir, err)
		}
		dropped := 0
		for _, s := range f.sites {
			if s.dropped {
				dropped++
			}
		}
		if len(f.mutants) < 100 || dropped*100 > len(f.sites) {
			t.Errorf("%s: %d mutants, %d of %d sites do not compile", target.dir, len(f.mutants), dropped, len(f.sites))
		}
		t.Logf("%s: %d mutants, %d of %d sites left out", target.dir, len(f.mutants), dropped, len(f.sites))
	}
}
