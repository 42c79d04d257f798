package experiment

import (
	"encoding/base64"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestFiguresOfRuns: a line for each run, a cell for each split and step, a bar for each executor, all within the page.
func TestFiguresOfRuns(t *testing.T) {
	var run Course
	run.Name, run.Splits, run.Executors = `a "<log>"`, 3, []string{"fast", "slow"}
	for k := range 4 {
		at := time.Duration(k) * time.Second
		run.Passes = append(run.Passes, Pass{Began: at, Ended: at + time.Second, Step: true, Iteration: k + 1,
			Objective: Known(1 / float64(k+1)), Shares: []float64{1, 0.5, 0}, Moves: k % 2, Cut: true,
			Busy: []time.Duration{time.Second, time.Second / 2}})
	}
	run.Passes = append(run.Passes, Pass{Began: 4 * time.Second, Ended: 5 * time.Second, Iteration: 4, Objective: 0.2})
	none := Course{Name: "nothing", Passes: []Pass{{Objective: Known(math.NaN()), Step: false}}}
	dir := t.TempDir()
	if err := WriteFigures(dir, "figures", []Course{run, run, none}); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "figures.html"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	for what, want := range map[string]int{"<polyline": 2 + 1 + 2*4, "data:image/png": 2, "▾</text>": 2 * 2,
		"slow</text>": 2, "a &#34;&lt;log&gt;&#34;</h3>": 2,
		"It has no training steps.": 1, "NaN": 0} {
		if got := strings.Count(page, what); got != want {
			t.Errorf("%d of %q, want %d", got, what, want)
		}
	}
	picture := regexp.MustCompile(`base64,([^"]*)"`).FindStringSubmatch(page)[1]
	img, err := png.Decode(base64.NewDecoder(base64.StdEncoding, strings.NewReader(picture)))
	if err != nil || img.Bounds().Dx() != 4 || img.Bounds().Dy() != 3 {
		t.Fatalf("%v, %v", err, img.Bounds())
	}
	for i, want := range []uint8{0, 127, 255} { // by split: all, half, none
		if got := img.(*image.Gray).GrayAt(2, i).Y; got != want {
			t.Errorf("split %d is drawn %d, want %d", i, got, want)
		}
	}
	for _, m := range regexp.MustCompile(`(?:x|y|x1|x2|y1|y2|width|height)="(-?[0-9.]+)"`).FindAllStringSubmatch(page,
		-1) {
		if v, err := strconv.ParseFloat(m[1], 64); err != nil || v < 0 || v > figureWidth {
			t.Errorf("%s is outside", m[0])
		}
	}
	rows, err := os.ReadFile(filepath.Join(dir, "figures.csv"))
	if want := `"a ""<log>""",4,true,3.000000,4.000000,0.25,0.5,true,1`; err != nil || !strings.Contains(string(rows),
		want) {
		t.Errorf("%v in\n%s", err, rows)
	}
	if _, err := os.Stat(filepath.Join(dir, "figures.json")); err != nil {
		t.Error(err)
	}
}
