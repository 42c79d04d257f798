package input_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/volley-engine/volley/storage/input"
	"github.com/volley-engine/volley/storage/input/csv"
	"github.com/volley-engine/volley/storage/pack"
)

// packParts packs a table of text, in parts of a size; 0 is one part.
func packParts(t *testing.T, text string, o input.Options, size int64) (*input.Source, *pack.Meta, error) {
	t.Helper()
	src, err := input.Open(context.Background(), o, textFile(t, text))
	if err != nil {
		return nil, nil, err
	}
	if size > 0 {
		smallParts(t, src, size)
	}
	p, err := packed(t, src, pack.Options{Workers: 2})
	if err != nil {
		return src, nil, err
	}
	return src, p.Meta, nil
}

// TestDroppedLabelsAreDroppedWhereverTheyStand reports whether a label that is no number
// among numbers is malformed in the first row of a part, too.
func TestDroppedLabelsAreDroppedWhereverTheyStand(t *testing.T) {
	var b strings.Builder
	b.WriteString("y,x\n")
	for i := range 40 {
		label := fmt.Sprint(i % 2)
		if i%10 == 5 {
			label = "?"
		}
		fmt.Fprintf(&b, "%s,%03d\n", label, i)
	}
	for size := int64(6); size < 90; size++ {
		_, m, err := packParts(t, b.String(), input.Options{Malformed: csv.DropMalformed}, size)
		if err != nil {
			t.Fatalf("parts of %d: %v", size, err)
		}
		if m.Rows != 36 || m.Malformed != 4 || m.TextLabels {
			t.Fatalf("parts of %d: %d rows, %d malformed, text labels %v", size, m.Rows, m.Malformed, m.TextLabels)
		}
	}
}

// TestDroppedRowsDoNotScale reports whether rows that are left out have no part in what
// columns are scaled by.
func TestDroppedRowsDoNotScale(t *testing.T) {
	o := input.Options{Malformed: csv.DropMalformed, Prepare: input.Prepare{Scale: input.ScaleStandard}}
	src, m, err := packParts(t, "y,x\n1,1\n0,3\n?,1000\n1,1\n0,3\n", o, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := src.Prepared.Columns[0].Shift; got != 2 || m.Malformed != 1 || m.Rows != 4 {
		t.Errorf("the mean is %v of %d rows with %d malformed, want 2 of 4 with 1", got, m.Rows, m.Malformed)
	}
}

// TestNullsAreMissing reports whether a text that is null is no number, wherever a
// number has to be.
func TestNullsAreMissing(t *testing.T) {
	for _, text := range []string{"y,x,z\n1,2,3\n0,-999,1\n1,1,1\n", "y,x,z\n1,2,3\n-999,5,1\n1,1,1\n"} {
		if _, m, err := packParts(t, text, input.Options{Null: "-999"}, 0); err == nil {
			t.Errorf("%d rows of %q, want an error about the null", m.Rows, text)
		}
	}
}

// TestAQuoteThatIsNotClosedIsNotDroppedSilently reports whether the rows that a lost
// quote swallows are not counted as one record.
func TestAQuoteThatIsNotClosedIsNotDroppedSilently(t *testing.T) {
	text := "y,x\n1,1\n0,\"2\n" + strings.Repeat("1,1\n0,3\n", 500)
	if _, m, err := packParts(t, text, input.Options{Malformed: csv.DropMalformed}, 0); err == nil &&
		m.Rows+m.Malformed < 1000 {
		t.Errorf("%d rows and %d malformed of 1002 lines", m.Rows, m.Malformed)
	}
}
