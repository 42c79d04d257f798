package model

import (
	"context"
	"io"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/input"
	"github.com/volley-engine/volley/storage/input/rows"
)

// Scorer is a model that says something of each row by itself, wherever the row is read.
type Scorer interface {
	// InputOf returns how data are to be read that are to be predicted. It opens them where their columns tell.
	InputOf(ctx context.Context, in rdd.Input, uris []string) (rdd.Input, error)
	// Says returns what is said of a row: a label and a score, or the prediction; or with each set the label and the
	// probability of each class.
	Says(each bool) (*Says, error)
}

// Says is what a model says of rows, in lines of CSV.
type Says struct {
	Header string
	// Of returns what adds the lines of a chunk of a source, which was opened as InputOf has it.
	Of func(src *input.Source, uris []string) (ChunkLines, error)
}

// ChunkLines adds the lines of a chunk's rows.
type ChunkLines func(to *Lines, c *rows.Chunk) error

// Said returns a dataset of what a model says of data, a line of CSV for each row. The model is asked for where
// partitions are read.
func Said(g *rdd.Graph, in rdd.Input, uris []string, says func() (*Says, error)) rdd.Dataset[string] {
	return rdd.Chunks(g, in, uris, func(src *input.Source) (func(*rows.Chunk, func(string) error) error, error) {
		s, err := says()
		if err != nil {
			return nil, err
		}
		return s.lines(src, uris)
	})
}

// lines returns what yields the lines of a source's chunks.
func (s *Says) lines(src *input.Source, uris []string) (func(*rows.Chunk, func(string) error) error, error) {
	add, err := s.Of(src, uris)
	return func(c *rows.Chunk, yield func(string) error) error {
		var lines Lines
		if err := add(&lines, c); err != nil {
			return err
		}
		text, from := string(lines.Text), 0
		for _, to := range lines.Ends {
			if err := yield(text[from : to-1]); err != nil {
				return err
			}
			from = to
		}
		return nil
	}, err
}

// Predict writes what a model says of each row, in input order, after a header.
func Predict(ctx context.Context, m Scorer, in rdd.Input, uris []string, w io.Writer, each bool) (n int64, err error) {
	says, err := m.Says(each)
	if err != nil {
		return 0, err
	}
	if in, err = m.InputOf(ctx, in, uris); err != nil {
		return 0, err
	}
	src, err := input.Open(ctx, in, uris...)
	if err != nil {
		return 0, err
	}
	add, err := says.Of(src, uris)
	if err != nil {
		return 0, err
	}
	if _, err := io.WriteString(w, says.Header+"\n"); err != nil {
		return 0, err
	}
	err = Reading[Lines]{
		Begin: func() *Lines { return &Lines{} },
		Chunk: func(to *Lines, c *rows.Chunk, _ int) error { return add(to, c) },
		Take:  func(l *Lines) error { return l.Put(w, &n) },
	}.Each(ctx, src)
	return n, err
}

// SetThreshold sets the score above which a model of two labels says that a row has the greater one.
func SetThreshold(m Model, score float64) error {
	of, ok := m.(interface{ SetThreshold(float64) error })
	if !ok {
		return fault.Newf(fault.Usage, "set", "the threshold", "the model tells more than two labels, or none")
	}
	return of.SetThreshold(score)
}

// Another returns the error about a model that is not the same on all nodes.
func Another(dir string) error {
	return fault.Newf(fault.BadInput, "load the model", dir,
		"it is another one than where the job began: it has changed, or differs between machines").
		WithHint("leave a model alone while jobs read it, and run the job again")
}
