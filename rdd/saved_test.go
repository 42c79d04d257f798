package rdd_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
)

// written writes files into a directory.
func written(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// linesOf are the lines of a directory, in order.
func linesOf(t *testing.T, dir string) ([]string, error) {
	t.Helper()
	return theAction(t, func(g *rdd.Graph) rdd.Action[[]string] { return rdd.Collect(rdd.TextFile(g, dir)) })
}

// TestASaveThatHasNotEndedIsNotRead: a directory with parts in their places and others on
// their way, and no marker, is refused, and says why.
func TestASaveThatHasNotEndedIsNotRead(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"killed while parts were put in their places": {"part-00000": "a\n", ".staged/part-00001-1-17": "b\n",
			".staged/owner": ""},
		"killed before the marker": {"part-00000": "a\n", "part-00001": "b\n", ".staged/owner": ""},
		"killed before any part":   {".staged/part-00000-1-17": "a\n"},
	} {
		dir := filepath.Join(t.TempDir(), "out")
		written(t, dir, files)
		lines, err := linesOf(t, dir)
		if err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "_SUCCESS") {
			t.Errorf("%s: read as %q, %v", name, lines, err)
		}
	}
}

// TestADirectoryOfAnotherProgramIsRead: it need have no marker, and one without content
// says nothing of the files.
func TestADirectoryOfAnotherProgramIsRead(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"no marker": {"part-00000": "a\n", "b.txt": "b\n"},
		"an empty marker": {"part-00000-7f.c000.txt": "a\n", "part-00001-7f.c000.txt": "b\n", "_SUCCESS": "",
			".part-00000-7f.c000.txt.crc": "x"},
	} {
		dir := filepath.Join(t.TempDir(), "out")
		written(t, dir, files)
		if lines, err := linesOf(t, dir); err != nil ||
			!slices.Contains([]string{"a b", "b a"}, strings.Join(lines, " ")) {
			t.Errorf("%s: read as %q, %v", name, lines, err)
		}
	}
}

// TestAnOverwriteReadsBackAsItself: what others have put into the directory is never
// read with what was saved; a directory that holds such files may be refused, by their
// names, and is then left alone.
func TestAnOverwriteReadsBackAsItself(t *testing.T) {
	for _, foreign := range []string{"notes.txt", "part-1.csv", "part-00000.old", "more/deep.txt"} {
		dir := filepath.Join(t.TempDir(), "out")
		written(t, dir, map[string]string{foreign: "what another has written\n"})
		err := saveLines(t, dir, "new", 3, rdd.Overwrite())
		if err != nil {
			if !strings.Contains(err.Error(), filepath.Base(foreign)) &&
				!strings.Contains(err.Error(), strings.Split(foreign, "/")[0]) {
				t.Errorf("%s: %v", foreign, err)
			}
			if _, err := os.Stat(filepath.Join(dir, foreign)); err != nil {
				t.Errorf("it was refused, and %s is gone", foreign)
			}
			continue
		}
		if got := readLines(t, dir); got != "new" {
			t.Errorf("beside %s: %s", foreign, got)
		}
	}
}

// TestAPartThatIsGoneIsMissed: a saved directory that has lost a part, or the end of one,
// is not read as if it were whole.
func TestAPartThatIsGoneIsMissed(t *testing.T) {
	for name, damage := range map[string]func(part string) error{
		"gone":   os.Remove,
		"cut":    func(part string) error { return os.Truncate(part, 10) },
		"empty":  func(part string) error { return os.Truncate(part, 0) },
		"longer": func(part string) error { return os.Truncate(part, 1000) },
	} {
		dir := filepath.Join(t.TempDir(), "out")
		if err := saveLines(t, dir, "new", 3); err != nil {
			t.Fatal(err)
		}
		parts, _ := filepath.Glob(filepath.Join(dir, "part-*"))
		if len(parts) != 3 {
			t.Fatalf("%d parts", len(parts))
		}
		if err := damage(parts[1]); err != nil {
			t.Fatal(err)
		}
		if got := readLines(t, dir); got != "refused" {
			t.Errorf("a part is %s, and the directory is read as %s", name, got)
		}
	}
}

// cell is a row of tables.
type cell struct {
	N    int64  `col:"n"`
	Text string `col:"text"`
}

// formats save rows and read them again.
var formats = map[string]struct {
	save func(rdd.Dataset[cell], string, ...rdd.SaveOption) rdd.Action[int64]
	read func(*rdd.Graph, string) rdd.Dataset[cell]
}{
	"csv": {rdd.SaveCSV[cell], func(g *rdd.Graph,
		dir string) rdd.Dataset[cell] {
		return rdd.CSV[cell](g, rdd.CSVOptions{}, dir)
	}},
	"json": {rdd.SaveJSONLines[cell], func(g *rdd.Graph,
		dir string) rdd.Dataset[cell] {
		return rdd.JSONLines[cell](g, dir)
	}},
	"parquet": {rdd.SaveParquet[cell], func(g *rdd.Graph,
		dir string) rdd.Dataset[cell] {
		return rdd.Parquet[cell](g, dir)
	}},
	"arrow": {rdd.SaveArrow[cell], func(g *rdd.Graph, dir string) rdd.Dataset[cell] { return rdd.Arrow[cell](g, dir) }},
	"text": {rdd.SaveText[cell], func(g *rdd.Graph, dir string) rdd.Dataset[cell] {
		return rdd.Map(rdd.TextFile(g, dir), func(string) cell { return cell{} })
	}},
}

// TestASaveOfNoRowsIsReadAsNoRows, however many parts there are, whatever the format.
func TestASaveOfNoRowsIsReadAsNoRows(t *testing.T) {
	for name, f := range formats {
		for _, rows := range []int64{0, 1} { // of one row, which the second round has, two parts are empty
			t.Run(fmt.Sprintf("%s, %d rows", name, rows), func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "out")
				n, err := theAction(t, func(g *rdd.Graph) rdd.Action[int64] {
					return f.save(rdd.Map(rdd.Range(g, 0, rows, 3), func(i int64) cell { return cell{i, "x"} }), dir)
				})
				if err != nil || n != rows {
					t.Fatalf("%d rows are saved: %v", n, err)
				}
				n, err = theAction(t, func(g *rdd.Graph) rdd.Action[int64] { return rdd.Count(f.read(g, dir)) })
				if err != nil || n != rows {
					t.Errorf("%d rows are read: %v", n, err)
				}
			})
		}
	}
}

// TestASaveOfAnEmptyListIsRead: a dataset that was made of nothing at all.
func TestASaveOfAnEmptyListIsRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	if _, err := theAction(t, func(g *rdd.Graph) rdd.Action[int64] {
		return rdd.SaveText(rdd.Parallelize[string](g, 1),
			dir)
	}); err != nil {
		t.Fatal(err)
	}
	if lines, err := linesOf(t, dir); err != nil || len(lines) > 0 {
		t.Errorf("read as %q, %v", lines, err)
	}
}

// TestADamagedCheckpointIsNotOneOfThoseKept: after a run has gone on from before one, two
// are whole, so that the newest may be damaged again.
func TestADamagedCheckpointIsNotOneOfThoseKept(t *testing.T) {
	dir := t.TempDir()
	turns := func(n, each int) (first int, err error) {
		cfg := testConfig(t)
		cfg.Executors, cfg.Checkpoints, cfg.CheckpointEach, cfg.Resume = 1, dir, each, true
		_, err = volley.Run(context.Background(), cfg, "turns", textArgs{},
			func(g *rdd.Graph, _ textArgs) rdd.Action[int64] {
				return rdd.Count(rdd.Range(g, 0, 3, 1))
			}, func(ctx context.Context, s *rdd.Session, _ textArgs, _ rdd.Action[int64]) (string, error) {
				var state int
				for it := range rdd.Iterations(ctx, s, &state, n) {
					if first == 0 {
						first = it.Number
					}
					state++
				}
				return "end", s.Err()
			})
		return first, err
	}
	if _, err := turns(4, 2); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{5, 7} { // each begins behind a damaged one, and keeps its last turn
		damageNewest(t, dir)
		if first, err := turns(n, n); err != nil || first != 3 {
			t.Fatalf("the job goes on with turn %d, want 3: %v", first, err)
		}
	}
}

// damageNewest flips a bit of the newest checkpoint.
func damageNewest(t *testing.T, dir string) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "checkpoint-*"))
	slices.Sort(files)
	raw, err := os.ReadFile(files[len(files)-1])
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)/2] ^= 1
	if err := os.WriteFile(files[len(files)-1], raw, 0o600); err != nil {
		t.Fatal(err)
	}
}
