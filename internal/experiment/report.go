package experiment

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/history"
)

// Report is the outcome of an experiment, as it is written: a page, a table for people, one for programs, and all that
// is known.
type Report struct {
	Title  string
	About  []string // paragraphs
	Header []string
	Rows   [][]string // texts
	Charts []Chart
	Groups []Group // of runs, how they went
	All    any     // for JSON
}

// Group is runs that are compared.
type Group struct {
	Title   string
	Courses []history.Run
}

// Chart is times to be compared, by what they are of; NaN is none.
type Chart struct {
	Title string
	Names []string
	Times []float64
}

// GainReport shows the cells of a Gain.
func GainReport(cells []Cell) *Report {
	r := &Report{Title: "The gain: auto beside the best exact run", All: cells,
		Header: []string{"job", "law", "within", "best exact", "exact s", "paper's A-BSP s", "auto s", "Ideal s",
			"auto / exact",
			"auto / Ideal"},
		About: []string{
			"Seconds of computed time until the objective is within a distance of the optimum (relative, where " +
				"that is above 1), evaluations that decide nothing left out; medians over seeds, with their range. " +
				"Best exact is the fastest of all solvers that wait for every row or steal it. Ideal is its passes " +
				"on executors that are always busy. The paper's A-BSP is the method as printed, 500 steps at most; " +
				"– is that it did not arrive.",
			"Of jobs that are not convex (mlp, kmeans, als) the optimum is the least objective that any run of " +
				"the table has reached from the same beginning, of which there are as many as seeds; a run that ends " +
				"in another minimum does not arrive, and most of a method's have to.",
		}}
	for _, c := range cells {
		r.Rows = append(r.Rows, []string{c.Job, c.Law, number(c.Within), c.Best, c.Exact.String(), c.Paper.String(),
			c.Auto.String(), c.Ideal.String(), quotient(c.Auto, c.Exact), quotient(c.Auto, c.Ideal)})
		r.Charts = append(r.Charts, Chart{fmt.Sprintf("%s, %s, to %v", c.Job, c.Law, c.Within), []string{c.Best,
			"paper's A-BSP", "auto", "Ideal"}, []float64{c.Exact.Median, c.Paper.Median, c.Auto.Median,
			c.Ideal.Median}})
	}
	return r
}

// PaperReport shows the rows of a Paper.
func PaperReport(table int, rows []PaperRow) *Report {
	where := map[int]string{3: "the multi-tenant cluster", 4: "the physical cluster"}[table]
	r := &Report{Title: fmt.Sprintf("A-BSP, table %d: %s", table, where), All: rows,
		Header: []string{"job", "paper's ratio", "ratio here"},
		About: []string{
			"BSP's time over A-BSP's, in the paper and here, and seconds of computed time (medians over seeds, " +
				"with their range), with the median of steps behind them. BSP, A-BSP without and with data " +
				"prioritization are the paper's method as printed; batches are BSP's steps of as many rows as " +
				"A-BSP's had; ours is volley by its defaults; Ideal is BSP's steps on executors that are always " +
				"busy. K-means under absp begins with samples of the rows, which the paper's does not.",
			"What the paper does not say: numbers of features, centres, ranks and densities; the thresholds " +
				"that it calls SparkBench's are not in SparkBench, which has neither Lasso nor Ridge; 300k × 30k " +
				"cells overflow its count. Here a run ends within a thousandth of the objective that BSP has after " +
				"the paper's number of steps.",
		}}
	for _, w := range Ways {
		r.Header = append(r.Header, w+" s")
	}
	for _, row := range rows {
		texts := []string{row.Job, number(row.Published), number(float64(row.Measured))}
		c := Chart{Title: row.Job}
		for _, w := range Ways {
			text := row.Times[w].String()
			if n := row.Iterations[w]; n > 0 {
				text += fmt.Sprintf(" / %.0f", n)
			}
			texts = append(texts, text)
			c.Names, c.Times = append(c.Names, w), append(c.Times, row.Times[w].Median)
		}
		r.Rows, r.Charts = append(r.Rows, texts), append(r.Charts, c)
	}
	return r
}

// String shows a median, and its range where there is one.
func (s Spread) String() string {
	switch {
	case math.IsNaN(s.Median):
		return "–"
	case s.Low == s.High:
		return number(s.Median)
	}
	return fmt.Sprintf("%s [%s, %s]", number(s.Median), number(s.Low), number(s.High))
}

func number(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

func quotient(a, b Spread) string { return number(a.Median / b.Median) }

// Markdown writes the report as a table.
func (r *Report) Markdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", r.Title)
	for _, p := range r.About {
		fmt.Fprintf(&b, "%s\n\n", p)
	}
	fmt.Fprintf(&b, "| %s |\n|%s\n", strings.Join(r.Header, " | "), strings.Repeat("---|", len(r.Header)))
	for _, row := range r.Rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Write puts the report into a directory: name.html, .md, .csv and .json.
func (r *Report) Write(dir, name string) error {
	var page, table, rows strings.Builder
	_ = r.Markdown(&table) // a builder takes all
	r.html(&page)
	out := csv.NewWriter(&rows)
	_ = out.Write(r.Header)
	_ = out.WriteAll(r.Rows)
	all, err := json.MarshalIndent(r.All, "", " ")
	if err != nil {
		return fault.New(fault.Internal, "write", name, err)
	}
	for ending, text := range map[string]string{"html": page.String(), "md": table.String(), "csv": rows.String(),
		"json": string(all) + "\n"} {
		path := filepath.Join(dir, name+"."+ending)
		if err := disk.WriteFile(path, []byte(text), 0o644); err != nil {
			return fault.New(fault.NoResources, "write", path, err)
		}
	}
	return nil
}
