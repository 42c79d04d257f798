package history

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"html"
	"math"
	"path/filepath"
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

// table has a line for each pass.
func table(runs []Run) string {
	var out strings.Builder
	w := csv.NewWriter(&out)
	_ = w.Write([]string{"run", "iteration", "step", "began_s", "ended_s", "objective", "share", "cut", "moves"})
	for i := range runs {
		for _, p := range runs[i].Passes {
			share := ""
			if len(p.Shares) > 0 {
				share = chart.Number(mean(p.Shares))
			}
			objective := ""
			if !math.IsNaN(float64(p.Objective)) {
				objective = strconv.FormatFloat(float64(p.Objective), 'g', -1, 64)
			}
			_ = w.Write([]string{runs[i].Name, strconv.Itoa(p.Iteration), strconv.FormatBool(p.Step),
				seconds(p.Began), seconds(p.Ended), objective, share, strconv.FormatBool(p.Cut), strconv.Itoa(p.Moves)})
		}
	}
	w.Flush()
	return out.String()
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 6, 64) }

func mean(all []float64) float64 {
	sum := 0.0
	for _, v := range all {
		sum += v
	}
	return sum / float64(len(all))
}
