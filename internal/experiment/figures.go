package experiment

import (
	"bytes"
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"html"
	"image"
	"image/color"
	"image/png"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
)

// Course is how a run went, pass by pass.
type Course struct {
	Name      string   `json:"name"`
	Executors []string `json:"executors"`
	Splits    int      `json:"splits"`
	Passes    []Pass   `json:"passes"`
}

// Pass is a step of a run, or an evaluation.
type Pass struct {
	Began     time.Duration   `json:"began_ns"` // on the job's clock
	Ended     time.Duration   `json:"ended_ns"`
	Step      bool            `json:"step"`
	Iteration int             `json:"iteration"`
	Objective Known           `json:"objective"`
	Cut       bool            `json:"cut"`
	Shares    []float64       `json:"shares,omitempty"`  // of each split's rows
	Busy      []time.Duration `json:"busy_ns,omitempty"` // of each executor, by its rows and its speed
	Moves     int             `json:"moves"`             // of splits, that begin after it
}

// WriteFigures writes a page of runs into a directory: name.html, .csv and .json. Lines differ by their dashes, shares
// by how dark they are, so that it reads in black and white.
func WriteFigures(dir, name string, runs []Course) error {
	var page strings.Builder
	fmt.Fprintf(&page, "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>How runs went</title>\n"+
		"<style>%s</style>\n<h1>How runs went</h1>\n", style)
	(&Group{Courses: runs}).draw(&page)
	page.WriteString("</html>\n")
	all, err := json.MarshalIndent(runs, "", " ")
	if err != nil {
		return fault.New(fault.Internal, "write", name, err)
	}
	for ending, text := range map[string]string{"html": page.String(), "csv": table(runs), "json": string(all) + "\n"} {
		path := filepath.Join(dir, name+"."+ending)
		if err := disk.WriteFile(path, []byte(text), 0o644); err != nil {
			return fault.New(fault.NoResources, "write", path, err)
		}
	}
	return nil
}

// draw compares runs, and shows each.
func (g *Group) draw(b *strings.Builder) {
	if g.Title != "" {
		fmt.Fprintf(b, "<h2>%s</h2>\n", html.EscapeString(g.Title))
	}
	convergence(g.Courses).draw(b)
	for i := range g.Courses {
		g.Courses[i].draw(b)
	}
}

// table has a line for each pass.
func table(runs []Course) string {
	var out strings.Builder
	w := csv.NewWriter(&out)
	_ = w.Write([]string{"run", "iteration", "step", "began_s", "ended_s", "objective", "share", "cut", "moves"})
	for i := range runs {
		for _, p := range runs[i].Passes {
			share := ""
			if len(p.Shares) > 0 {
				share = number(mean(p.Shares))
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

// convergence shows how far each run is above the least objective of all, by time, on a logarithmic scale.
func convergence(runs []Course) *lines {
	least := math.Inf(1)
	for i := range runs {
		for _, p := range runs[i].Passes {
			if v := float64(p.Objective); !math.IsNaN(v) {
				least = min(least, v)
			}
		}
	}
	chart := &lines{title: "Objective above the least of all runs, by seconds", across: "s", logarithmic: true}
	smallest := float64(1e-9 * max(1, math.Abs(least)))
	for i := range runs {
		l := line{name: runs[i].Name}
		for _, p := range runs[i].Passes {
			if v := float64(p.Objective); !math.IsNaN(v) {
				l.x, l.y = append(l.x, p.Ended.Seconds()), append(l.y, max(smallest, v-least))
			}
		}
		chart.lines = append(chart.lines, l)
	}
	return chart
}

// steps returns a run's steps, without its evaluations.
func (c *Course) steps() (out []Pass) {
	for _, p := range c.Passes {
		if p.Step {
			out = append(out, p)
		}
	}
	return out
}

func (c *Course) draw(b *strings.Builder) {
	fmt.Fprintf(b, "<h3>%s</h3>\n", html.EscapeString(c.Name))
	steps := c.steps()
	if len(steps) == 0 {
		b.WriteString("<p>It has no training steps.</p>\n")
		return
	}
	c.drawShares(b, steps)
	c.processed(steps).draw(b)
	c.processTimes(steps).draw(b)
	c.drawStep(b, steps)
}

// Sizes of figures, in pixels.
const (
	figureWidth, figureHeight = 520, 260
	margin                    = 56
	stripHeight               = 14
	mostSplits                = 400 // of a strip of shares: more than a reader can tell apart
)

// drawShares shows the share of each split in each step: white is none of its rows, black all of them; a triangle above
// a step is that splits move after it.
func (c *Course) drawShares(b *strings.Builder, steps []Pass) {
	splits := min(c.Splits, mostSplits)
	high := min(figureHeight-20, max(40, 4*splits))
	fmt.Fprintf(b, "<figure><figcaption>Share of each split (down) in each step (across); ▾ splits move</figcaption>"+
		"<svg width=\"%d\" height=\"%d\" role=\"img\">", figureWidth, 18+high)
	w := float64(figureWidth-margin) / float64(len(steps))
	for k, p := range steps {
		if p.Moves > 0 {
			fmt.Fprintf(b, "<text x=\"%.1f\" y=\"12\" text-anchor=\"middle\">▾</text>",
				margin+float64(w*(float64(k)+0.5)))
		}
	}
	fmt.Fprintf(b, "<image x=\"%d\" y=\"16\" width=\"%d\" height=\"%d\" preserveAspectRatio=\"none\" "+
		"style=\"image-rendering:pixelated\" href=\"data:image/png;base64,%s\"/>", margin, figureWidth-margin, high,
		base64.StdEncoding.EncodeToString(sharesPicture(steps, splits)))
	fmt.Fprintf(b,
		"<rect x=\"%d\" y=\"16\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#111\"/></svg></figure>\n",
		margin, figureWidth-margin, high)
}

// sharesPicture returns a PNG with a pixel for each split and step.
func sharesPicture(steps []Pass, splits int) []byte {
	img := image.NewGray(image.Rect(0, 0, len(steps), max(1, splits)))
	for k, p := range steps {
		for i := range splits {
			share := 1.0
			if i < len(p.Shares) {
				share = min(1, max(0, p.Shares[i]))
			}
			img.SetGray(k, i, color.Gray{Y: 255 - uint8(math.Round(255*share))})
		}
	}
	var out bytes.Buffer
	_ = png.Encode(&out, img) // a buffer takes all
	return out.Bytes()
}

// processed shows how often the rows of each split have been folded, the least first.
func (c *Course) processed(steps []Pass) *lines {
	times := make([]float64, c.Splits)
	for _, p := range steps {
		for i, share := range p.Shares {
			times[i] += share
		}
	}
	slices.Sort(times)
	l := line{name: "splits, the least processed first"}
	for i, n := range times {
		l.x, l.y = append(l.x, float64(i+1)), append(l.y, n)
	}
	return &lines{title: "Times that each split was processed", across: "split", lines: []line{l}}
}

// processTimes shows how long the fastest, the median and the slowest executor have folded in each step.
func (c *Course) processTimes(steps []Pass) *lines {
	chart := &lines{title: "Seconds that executors fold in each step", across: "step",
		lines: []line{{name: "slowest"}, {name: "median"}, {name: "fastest"}}}
	for k, p := range steps {
		busy := slices.Sorted(slices.Values(p.Busy))
		if len(busy) == 0 {
			continue
		}
		for i, d := range []time.Duration{busy[len(busy)-1], busy[len(busy)/2], busy[0]} {
			l := &chart.lines[i]
			l.x, l.y = append(l.x, float64(k+1)), append(l.y, d.Seconds())
		}
	}
	return chart
}

// drawStep shows one step, of median length: how long each executor folds, and when the step ends.
func (c *Course) drawStep(b *strings.Builder, steps []Pass) {
	byLength := slices.SortedFunc(slices.Values(steps), func(p, q Pass) int { return int(p.took() - q.took()) })
	p := byLength[len(byLength)/2]
	longest := p.took()
	for _, d := range p.Busy {
		longest = max(longest, d)
	}
	if longest == 0 || len(p.Busy) == 0 {
		return
	}
	scale := float64(figureWidth-nameWidth-20) / float64(longest)
	fmt.Fprintf(b, "<figure><figcaption>Step of iteration %d: each executor's folding; the line is its end, after %s s"+
		"</figcaption><svg width=\"%d\" height=\"%d\" role=\"img\">", p.Iteration, number(p.took().Seconds()),
		figureWidth,
		len(p.Busy)*stripHeight+8)
	for i, d := range p.Busy {
		name := strconv.Itoa(i)
		if i < len(c.Executors) {
			name = c.Executors[i]
		}
		fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text><rect x=\"%d\" y=\"%d\" width=\"%.1f\" "+
			"height=\"%d\" fill=\"#888\" stroke=\"#111\"/>", nameWidth-6, (i+1)*stripHeight-2, html.EscapeString(name),
			nameWidth, i*stripHeight+2, scale*float64(d), stripHeight-4)
	}
	end := nameWidth + float64(scale*float64(p.took()))
	fmt.Fprintf(b,
		"<line x1=\"%.1f\" x2=\"%.1f\" y1=\"0\" y2=\"%d\" stroke=\"#111\" stroke-width=\"2\"/></svg></figure>\n",
		end, end, len(p.Busy)*stripHeight+8)
}

func (p *Pass) took() time.Duration { return p.Ended - p.Began }
