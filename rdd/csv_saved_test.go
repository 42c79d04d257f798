package rdd_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/volley-engine/volley/rdd"
)

// marked is a row whose first column's name begins as a comment does.
type marked struct {
	ID   int64  `col:"#id"`
	Text string `col:"text"`
}

// alone is a row of a single text that may be null.
type alone struct {
	Text *string `col:"text"`
}

// savedAndRead saves rows as CSV and reads them.
func savedAndRead[T any](t *testing.T, rows []T) ([]T, error) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	if _, err := theAction(t, func(g *rdd.Graph) rdd.Action[int64] {
		return rdd.SaveCSV(rdd.Parallelize(g, 1, rows...),
			dir)
	}); err != nil {
		return nil, err
	}
	return theAction(t, func(g *rdd.Graph) rdd.Action[[]T] { return rdd.Collect(rdd.CSV[T](g, rdd.CSVOptions{}, dir)) })
}

// TestAColumnNamedAsACommentComesBack reports whether a # that begins the first column's
// name is part of it.
func TestAColumnNamedAsACommentComesBack(t *testing.T) {
	want := []marked{{1, "a"}, {2, "# b"}, {3, "\ufeffc"}, {4, "d\re"}, {5, " f\t"}, {6, "\n"}, {7, "\r"},
		{8, "\"\"\""}}
	got, err := savedAndRead(t, want)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

// TestANullThatIsAloneComesBack reports whether a row of nothing but a null is neither
// lost nor an empty text, or is refused.
func TestANullThatIsAloneComesBack(t *testing.T) {
	text, empty := "a", ""
	got, err := savedAndRead(t, []alone{{&text}, {nil}, {&empty}})
	if err != nil {
		return
	}
	if len(got) != 3 || got[1].Text != nil || got[2].Text == nil {
		t.Errorf("%d rows, the second has a text: %v", len(got), len(got) > 1 && got[1].Text != nil)
	}
}
