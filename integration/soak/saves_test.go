package soak

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/volley-engine/volley/rdd"
)

// savedText saves rows as lines, which are then read.
func savedText[K comparable, V any](d *draw, k *kind[K, V], n *node[row[K, V]]) check {
	name, words := fmt.Sprint("text-", len(d.steps)), fmt.Sprintf("SaveText of d%d", n.id)
	line := func(r row[K, V]) string { return fmt.Sprintf("%q", k.text(r)) }
	return check{words, func(b *built) func(context.Context, *rdd.Session) error {
		dir := filepath.Join(b.dir, name)
		a := rdd.SaveText(rdd.Map(n.in(b), line), dir)
		return func(ctx context.Context, s *rdd.Session) error {
			rows, err := a.Run(ctx, s)
			if err == nil {
				err = equal(rows, int64(len(n.rows())))
			}
			if err == nil {
				err = savedIs(dir, textsOf(n.rows(), line), n.ordered)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", words, err)
			}
			return nil
		}
	}}
}

// savedIs compares a saved directory with lines.
func savedIs(dir string, want []string, ordered bool) error {
	lines, err := savedLines(dir)
	if err != nil {
		return err
	}
	return sameTexts(lines, want, ordered)
}

// savedLines are the lines of a saved directory's parts.
func savedLines(dir string) (all []string, err error) {
	err = eachSavedPart(dir, func(raw []byte) error {
		if text := strings.TrimSuffix(string(raw), "\n"); text != "" || len(raw) > 0 {
			all = append(all, strings.Split(text, "\n")...)
		}
		return nil
	})
	return all, err
}

// eachSavedPart hands out the files of a saved directory that is whole, in order.
func eachSavedPart(dir string, take func(raw []byte) error) error {
	if _, err := os.Stat(filepath.Join(dir, "_SUCCESS")); err != nil {
		return err
	}
	parts, _ := filepath.Glob(filepath.Join(dir, "part-*"))
	for _, p := range parts {
		raw, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		if err := take(raw); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	return nil
}
