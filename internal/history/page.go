package history

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"html"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/volley-engine/volley/internal/chart"
	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
)

// Write writes runs into a file: a page where it ends in .html, a line for each pass where in .csv, and all that is
// known of them where in .json.
func Write(path string, runs []Run) error {
	var text string
	switch filepath.Ext(path) {
	case ".html":
		text = page(runs)
	case ".csv":
		text = table(runs)
	case ".json":
		all, err := json.MarshalIndent(runs, "", " ")
		if err != nil {
			return fault.New(fault.Internal, "write", path, err)
		}
		text = string(all) + "\n"
	default:
		return fault.Newf(fault.Usage, "write", path, "its name ends in none of .html, .csv and .json")
	}
	if err := disk.WriteFile(path, []byte(text), 0o644); err != nil {
		return fault.New(fault.NoResources, "write", path, err)
	}
	return nil
}

// page returns a page that needs nothing from elsewhere.
func page(runs []Run) string {
	var b strings.Builder
	title := "How " + runs[0].Name + " went"
	if len(runs) > 1 {
		title = fmt.Sprintf("How %d runs went", len(runs))
	}
	fmt.Fprintf(&b, "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" "+
		"content=\"width=device-width\"><title>%s</title>\n<style>%s</style>\n<h1>%s</h1>\n", html.EscapeString(title),
		chart.Style, html.EscapeString(title))
	Draw(&b, runs)
	b.WriteString("</html>\n")
	return b.String()
}

// table has a line for each step, and for each objective that was found beside them.
func table(runs []Run) string {
	var out strings.Builder
	w := csv.NewWriter(&out)
	_ = w.Write([]string{"run", "iteration", "step", "began_s", "ended_s", "objective", "share", "cut", "moves"})
	for i := range runs {
		for _, line := range runs[i].lines() {
			_ = w.Write(line)
		}
	}
	w.Flush()
	return out.String()
}

// lines returns those of a run, in the order in which they ended.
func (c *Run) lines() (all [][]string) {
	found := map[int]float64{} // by the step that has found it itself
	points := slices.Clone(c.Points)
	for _, p := range points {
		if p.Step {
			found[p.Iteration] = p.Objective
		}
	}
	points = slices.DeleteFunc(points, func(p Point) bool { return p.Step })
	beside := func(until time.Duration) {
		for ; len(points) > 0 && points[0].Ended < until; points = points[1:] {
			p := points[0]
			all = append(all, []string{c.Name, strconv.Itoa(p.Iteration), "false", seconds(p.Began), seconds(p.Ended),
				exact(p.Objective), "", "false", "0"})
		}
	}
	for _, s := range c.Steps {
		beside(s.Ended)
		objective := ""
		if v, ok := found[s.Iteration]; ok {
			objective = exact(v)
		}
		all = append(all, []string{c.Name, strconv.Itoa(s.Iteration), "true", seconds(s.Began), seconds(s.Ended),
			objective, chart.Number(s.Share), strconv.FormatBool(s.Cuts > 0), strconv.Itoa(s.Moves)})
	}
	beside(math.MaxInt64)
	return all
}

func exact(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 6, 64) }
