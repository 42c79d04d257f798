package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"github.com/volley-engine/volley/mllib"
	"github.com/volley-engine/volley/storage/input"
	"github.com/volley-engine/volley/storage/input/files"
	"github.com/volley-engine/volley/storage/input/rows"
)

// inspection is what inspect reports about a data file.
type inspection struct {
	Path     string       `json:"path"`
	Format   input.Format `json:"format"`
	Bytes    int64        `json:"bytes"`
	Files    int          `json:"files"`
	Rows     int64        `json:"rows"`
	Features int          `json:"features"`
	Layout   string       `json:"layout"`
	Nonzeros int64        `json:"nonzeros"`
	Labels   []string     `json:"labels,omitempty"`
	Columns  []string     `json:"columns,omitempty"`
	First    []string     `json:"first"`
}

// firstRows is how many rows inspect shows.
const firstRows = 5

func inspectCommand() *cobra.Command {
	f := &dataFlags{}
	c := &cobra.Command{
		Use:   "inspect PATH",
		Short: "Show what is in a model directory or a data file",
		Args:  exactArgs(1, "a model directory or data"),
		RunE: func(c *cobra.Command, args []string) error {
			f.data = args
			if err := f.ready(c); err != nil {
				return err
			}
			if _, err := files.ReadFile(files.Join(args[0], "model.json")); err == nil {
				return inspectModel(args[0], f.json)
			}
			return inspectData(c.Context(), f, args[0])
		},
	}
	f.register(c)
	f.prepare.register(c.Flags())
	c.Flags().Lookup("data").Hidden = true
	c.Flags().BoolVar(&f.json, "json", false, "print one JSON object")
	return c
}

func inspectModel(dir string, asJSON bool) error {
	m, err := mllib.LoadModel(dir)
	if err != nil {
		return err
	}
	raw, err := files.ReadFile(files.Join(dir, "model.json"))
	if err != nil {
		return err
	}
	head := map[string]any{}
	if err := json.Unmarshal(raw, &head); err != nil {
		return err
	}
	if linear, ok := m.(*mllib.LinearModel); ok {
		head["nonzero_weights"] = linear.Nonzeros()
	}
	if asJSON {
		return printJSON(head)
	}
	fmt.Printf("%v model in %s: %s", head["job"], dir, m.Describe())
	return nil
}

func inspectData(ctx context.Context, f *dataFlags, path string) error {
	if err := f.prepare.validate(); err != nil {
		return err
	}
	in := f.labelled()
	src, err := input.Open(ctx, in, path)
	if err != nil {
		return err
	}
	out := &inspection{Path: path, Format: src.Format, Files: len(src.Files), Columns: src.FeatureNames()}
	for _, file := range src.Files {
		out.Bytes += file.Size
	}
	seen := map[string]bool{}
	low, top := int32(1<<30), int32(-1)
	for part := range src.Len() {
		if err := src.Read(ctx, part, func(c *rows.Chunk) error {
			out.take(c, seen, &low,
				&top)
			return nil
		}); err != nil {
			return err
		}
	}
	if out.Layout == "sparse" {
		out.Features = int(top) + 1 - int(min(low, 1)) // numbered from one where no index is zero
	}
	for l := range seen {
		out.Labels = append(out.Labels, l)
	}
	sort.Strings(out.Labels)
	if f.json {
		return printJSON(out)
	}
	out.print()
	return nil
}

// maxInspectedLabels is how many distinct labels are listed.
const maxInspectedLabels = 50

func (o *inspection) take(c *rows.Chunk, seen map[string]bool, low, top *int32) {
	o.Layout = "sparse"
	if c.Dense() {
		o.Layout, o.Features = "dense", c.Width
	}
	o.Nonzeros += int64(len(c.Values))
	for r := range c.Rows() {
		label := rows.FormatLabel(c.Labels[r])
		if c.Texts != nil {
			label = c.Texts[int(c.Labels[r])]
		}
		if len(seen) < maxInspectedLabels {
			seen[label] = true
		}
		if len(o.First) < firstRows {
			o.First = append(o.First, showRow(c, r, label))
		}
	}
	for _, j := range c.Indices {
		*low, *top = min(*low, j), max(*top, j)
	}
	o.Rows += int64(c.Rows())
}

// showRow returns a row as text, at most ten values of it.
func showRow(c *rows.Chunk, r int, label string) string {
	const most = 10
	var b strings.Builder
	b.WriteString(label + " |")
	from, to := r*c.Width, (r+1)*c.Width
	if !c.Dense() {
		from, to = int(c.Offsets[r]), int(c.Offsets[r+1])
	}
	for k := from; k < min(to, from+most); k++ {
		if c.Dense() {
			fmt.Fprintf(&b, " %g", c.Values[k])
		} else {
			fmt.Fprintf(&b, " %d:%g", c.Indices[k], c.Values[k])
		}
	}
	if to-from > most {
		fmt.Fprintf(&b, " … (%d in all)", to-from)
	}
	return b.String()
}

func (o *inspection) print() {
	fmt.Printf("%s: %s, %d bytes in %d files\n", o.Path, o.Format, o.Bytes, o.Files)
	fmt.Printf("%d rows, %d features (%s, %d values)\n", o.Rows, o.Features, o.Layout, o.Nonzeros)
	if len(o.Columns) > 0 {
		fmt.Printf("features: %s\n", strings.Join(o.Columns[:min(len(o.Columns), 20)], " "))
	}
	if len(o.Labels) > 0 {
		fmt.Printf("labels: %s\n", strings.Join(o.Labels[:min(len(o.Labels), 20)], " "))
	}
	for _, row := range o.First {
		fmt.Println("  " + row)
	}
}
