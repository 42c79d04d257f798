package soak

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/volley-engine/volley/rdd"
)

// input is a file that has to lie there before a plan is made.
type input struct {
	name string
	make func() ([]byte, error)
}

// write writes a pipeline's inputs.
func (p *pipeline) write(dir string) error {
	for _, f := range p.files {
		path := filepath.Join(dir, f.name)
		raw, err := f.make()
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// readers are how the engine reads tables, by format.
var readers = map[string]func(*rdd.Graph, string) rdd.Dataset[record]{
	"csv":     func(g *rdd.Graph, uri string) rdd.Dataset[record] { return rdd.CSV[record](g, rdd.CSVOptions{}, uri) },
	"jsonl":   func(g *rdd.Graph, uri string) rdd.Dataset[record] { return rdd.JSONLines[record](g, uri) },
	"parquet": func(g *rdd.Graph, uri string) rdd.Dataset[record] { return rdd.Parquet[record](g, uri) },
	"arrow":   func(g *rdd.Graph, uri string) rdd.Dataset[record] { return rdd.Arrow[record](g, uri) },
}

// savers are how it writes them.
var savers = map[string]func(rdd.Dataset[record], string, ...rdd.SaveOption) rdd.Action[int64]{
	"csv": rdd.SaveCSV[record], "jsonl": rdd.SaveJSONLines[record], "parquet": rdd.SaveParquet[record],
	"arrow": rdd.SaveArrow[record],
}

// records are a source of numbers that come from a few files of a table.
func records(d *draw) *node[number] {
	f, files, each, seed := one(d, formats...), 1+d.IntN(3), 1+sizes(d)/3, d.Uint64()
	dir := fmt.Sprintf("table-%d", len(d.steps))
	rows := func(file int) (out []record) {
		for i := range each {
			out = append(out, recordOf(both(seed, uint64(file*each+i))))
		}
		return out
	}
	for i := range files {
		d.files = append(d.files, input{fmt.Sprintf("%s/%d.%s", dir, i, f.name),
			func() ([]byte, error) { return f.write(rows(i)) }})
	}
	as := func(r record) number { return number{Key: uint64(r.ID) % 300, Value: digest(r.text())} }
	return source(d, fmt.Sprintf("Map of %d files of %s", files, f.name), files*each,
		func(b *built) rdd.Dataset[number] {
			return rdd.Map(readers[f.name](b.g, filepath.Join(b.dir, dir, "*."+f.name)), as)
		}, func() [][]number {
			var all []record
			for i := range files {
				all = append(all, rows(i)...)
			}
			return rowOf(as)([][]record{all})
		})
}

// lines are a source of numbers that come from a few files of text.
func lines(d *draw) *node[number] {
	files, each, seed := 1+d.IntN(3), sizes(d)/3, d.Uint64()
	dir := fmt.Sprintf("text-%d", len(d.steps))
	text := func(file int) string {
		var b strings.Builder
		for i := range each {
			fmt.Fprintf(&b, "%x%s\n", both(seed, uint64(file*each+i)), strings.Repeat("-", i%5))
		}
		return b.String()
	}
	for i := range files {
		d.files = append(d.files, input{fmt.Sprintf("%s/%d.txt", dir, i),
			func() ([]byte, error) { return []byte(text(i)), nil }})
	}
	as := func(line string) number { return number{Key: digest(line) % 40, Value: digest(line)} }
	return source(d, fmt.Sprintf("Map of %d text files", files), files*each, func(b *built) rdd.Dataset[number] {
		return rdd.Map(rdd.TextFile(b.g, filepath.Join(b.dir, dir)), as)
	}, func() [][]number {
		var all []string
		for i := range files {
			all = append(all, strings.Fields(text(i))...)
		}
		return rowOf(as)([][]string{all})
	})
}

// savedTable saves rows as records, which are then read by others than the engine.
func savedTable[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) check {
	f, dir := one(d, formats...), fmt.Sprint("saved-", len(d.steps))
	as := func(r row[K, V]) record { return recordOf(k.digest(r)) }
	words := fmt.Sprintf("Save as %s of d%d", f.name, n.id)
	return check{words, func(b *built) func(context.Context, *rdd.Session) error {
		a := savers[f.name](rdd.Map(n.in(b), as), filepath.Join(b.dir, dir))
		return func(ctx context.Context, s *rdd.Session) error {
			_, err := a.Run(ctx, s)
			var got []string
			if err == nil {
				got, err = savedRecords(filepath.Join(b.dir, dir), f)
			}
			if err == nil {
				err = sameTexts(got, textsOf(n.rows(), func(r row[K, V]) string { return as(r).text() }), n.ordered)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", words, err)
			}
			return nil
		}
	}}
}

// savedRecords are the texts of the records of a saved directory.
func savedRecords(dir string, f format) (all []string, err error) {
	err = eachSavedPart(dir, func(raw []byte) error {
		rows, err := f.read(raw)
		all = append(all, textsOf(rows, record.text)...)
		return err
	})
	return all, err
}
