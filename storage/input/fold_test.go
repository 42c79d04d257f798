package input

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/volley-engine/volley/storage/input/rows"
)

// TestFoldsPartitionTheRows: each row is held by exactly one of the folds and read by
// all others, whatever the format.
func TestFoldsPartitionTheRows(t *testing.T) {
	var csv, svm strings.Builder
	const all, of = 1000, 4
	csv.WriteString("label,a,b\n")
	for i := range all {
		fmt.Fprintf(&csv, "%d,%d,%d\n", i, i, i%7)
		fmt.Fprintf(&svm, "%d 1:%d %d:1\n", i, i+1, 2+i%5)
	}
	for name, text := range map[string]string{"rows.csv": csv.String(), "rows.libsvm": svm.String()} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		held := map[float64]int{}
		for k := range of {
			train := foldRows(t, path, &rows.Fold{Number: k, Of: of})
			test := foldRows(t, path, &rows.Fold{Number: k, Of: of, Held: true})
			if len(train)+len(test) != all || len(test) < all/of/2 || len(test) > 2*all/of {
				t.Errorf("%s: fold %d reads %d rows and holds %d", name, k, len(train), len(test))
			}
			for label, first := range test {
				held[label]++
				if _, both := train[label]; both || first != label && first != label+1 {
					t.Errorf("%s: row %v is on both sides, or has the values of another: %v", name, label, first)
				}
			}
		}
		for label, n := range held {
			if n != 1 {
				t.Errorf("%s: row %v is held by %d folds", name, label, n)
			}
		}
		if len(held) != all {
			t.Errorf("%s: %d rows are held by some fold", name, len(held))
		}
	}
}

// TestRowsToStopByAreNobodyElses: neither trained on nor held by the fold.
func TestRowsToStopByAreNobodyElses(t *testing.T) {
	var csv strings.Builder
	csv.WriteString("label,a,b\n")
	for i := range 1000 {
		fmt.Fprintf(&csv, "%d,%d,%d\n", i, i, i%7)
	}
	path := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(path, []byte(csv.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	of := func(f rows.Fold) map[float64]float64 { return foldRows(t, path, &f) }
	train, stop, held := of(rows.Fold{Number: 1, Of: 5, Stop: 0.25}),
		of(rows.Fold{Number: 1, Of: 5, Stop: 0.25, Stopping: true}),
		of(rows.Fold{Number: 1, Of: 5, Stop: 0.25, Held: true})
	if len(train)+len(stop)+len(held) != 1000 || len(stop) < 150 || len(stop) > 250 {
		t.Errorf("%d rows to train on, %d to stop by, %d held", len(train), len(stop), len(held))
	}
	for label := range stop {
		if _, both := train[label]; both || held[label] != 0 {
			t.Errorf("row %v is on two sides", label)
		}
	}
	for _, share := range []float64{0.1, 0.25, 0.4, 0.5} {
		if alone := float64(len(of(rows.Fold{Stop: share, Stopping: true}))) / 1000; math.Abs(alone-share) > 0.05 {
			t.Errorf("%v of the rows to stop by, want %v", alone, share)
		}
	}
}

// foldRows are the first values of the rows that a fold reads, by label.
func foldRows(t *testing.T, path string, f *rows.Fold) map[float64]float64 {
	t.Helper()
	s, err := Open(context.Background(), Options{Fold: *f}, path)
	if err != nil {
		t.Fatal(err)
	}
	out := map[float64]float64{}
	for part := range s.Len() {
		err := s.Read(context.Background(), part, func(c *rows.Chunk) error {
			for r := range c.Rows() {
				at := r * c.Width
				if !c.Dense() {
					at = int(c.Offsets[r])
				}
				out[c.Labels[r]] = c.Values[at]
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// TestStratifiedFoldsHaveTheirShareOfEachLabel: within one row, of numbers and texts, read or prepared.
func TestStratifiedFoldsHaveTheirShareOfEachLabel(t *testing.T) {
	const all, of = 1000, 5
	for _, texts := range []bool{false, true} {
		var csv strings.Builder
		csv.WriteString("label,a\n")
		for i := range all {
			label := "1"
			if i%10 == 3 { // a rhythm, of ten rows
				label = "0"
			}
			if texts {
				label = "class " + label
			}
			fmt.Fprintf(&csv, "%s,%d\n", label, i)
		}
		path := filepath.Join(t.TempDir(), "rows.csv")
		if err := os.WriteFile(path, []byte(csv.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, prepared := range []Prepare{{}, {Scale: ScaleMinMax}} {
			seen := map[float64]bool{}
			for k := range of {
				f := rows.Fold{Number: k, Of: of, Stratified: true, Held: true}
				s, err := Open(context.Background(), Options{Fold: f, Prepare: prepared}, path)
				if err != nil {
					t.Fatal(err)
				}
				count, sum, n := map[rows.Class]int{}, 0.0, 0.0
				err = s.Read(context.Background(), 0, func(c *rows.Chunk) error {
					for r := range c.Rows() {
						count[c.ClassOf(r)]++
						n, sum = n+1, sum+c.Values[r]
						seen[c.Values[r]] = true
					}
					return nil
				})
				if err != nil || len(count) != 2 {
					t.Fatal(count, err)
				}
				for class, n := range count {
					if n != all/of/10 && n != 9*all/of/10 {
						t.Errorf("fold %d has %d rows of %v", k, n, class)
					}
				}
			}
			if len(seen) != all && prepared.Scale == ScaleNone {
				t.Errorf("%d of %d rows are in some fold", len(seen), all)
			}
		}
	}
}

// TestPreparationsAreFittedToTheRowsThatAreRead, stratified or not: what is scaled to mean 0 has it.
func TestPreparationsAreFittedToTheRowsThatAreRead(t *testing.T) {
	var csv strings.Builder
	csv.WriteString("label,a\n")
	for i := range 1000 {
		fmt.Fprintf(&csv, "%d,%d\n", i%3, i*i)
	}
	path := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(path, []byte(csv.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, f := range []rows.Fold{{Number: 1, Of: 3}, {Number: 1, Of: 3, Stratified: true}} {
		s, err := Open(context.Background(), Options{Fold: f, Prepare: Prepare{Scale: ScaleStandard}}, path)
		if err != nil {
			t.Fatal(err)
		}
		var sum, n float64
		err = s.Read(context.Background(), 0, func(c *rows.Chunk) error {
			for _, v := range c.Values {
				n, sum = n+1, sum+v
			}
			return nil
		})
		if err != nil || math.Abs(sum/n) > 1e-9 {
			t.Errorf("%+v: a mean of %v over %v rows, %v", f, sum/n, n, err)
		}
	}
}

// TestStratifiedFoldsOfManyFiles have their share, too, of a label with one row in each.
func TestStratifiedFoldsOfManyFiles(t *testing.T) {
	dir := t.TempDir()
	for i := range 20 {
		text := "label,a\n1,1\n0,2\n0,3\n0,4\n"
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("part-%02d.csv", i)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for k := range 5 {
		f := rows.Fold{Number: k, Of: 5, Stratified: true, Held: true}
		s, err := Open(context.Background(), Options{Fold: f}, dir)
		if err != nil {
			t.Fatal(err)
		}
		count := map[float64]int{}
		for part := range s.Len() {
			err := s.Read(context.Background(), part, func(c *rows.Chunk) error {
				for _, y := range c.Labels {
					count[y]++
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if count[1] != 4 || count[0] < 9 || count[0] > 15 {
			t.Errorf("fold %d has %v", k, count)
		}
	}
}

// TestIDsThatAreTexts: numbers stay, those that would be written otherwise become texts, what is missing is an error
// with its line, and what is not UTF-8 is refused.
func TestIDsThatAreTexts(t *testing.T) {
	open := func(ids ...string) ([]string, error) {
		path := filepath.Join(t.TempDir(), "ids.csv")
		text := "user,item,rating\n"
		for _, id := range ids {
			text += id + ",1,3\n"
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p := Prepare{IDs: [][]string{{"user"}, {"item"}}, Beside: [][]string{{"user"}, {"item"}, {"rating"}}}
		s, err := Open(context.Background(), Options{NoLabel: true, Prepare: p}, path)
		if err != nil {
			return nil, err
		}
		return s.Preparation().IDColumn("user").IDs, nil
	}
	for _, of := range []struct {
		ids   []string
		texts bool
		says  string
	}{
		{[]string{"1", "12", "-3", "0"}, false, ""}, {[]string{"1.0", "2.0"}, false, ""},
		{[]string{"007", "7"}, true, ""}, {[]string{"12e1", "2"}, true, ""},
		{[]string{"12345678901234567890"}, true, ""},
		{[]string{"a", "b"}, true, ""}, {[]string{"a", "NA"}, false, "line 3"}, {[]string{"Andr\xe9"}, false, "UTF-8"},
	} {
		got, err := open(of.ids...)
		if of.says != "" {
			if err == nil || !strings.Contains(err.Error(), of.says) {
				t.Errorf("%q: %v", of.ids, err)
			}
			continue
		}
		if err != nil || (got != nil) != of.texts || of.texts && len(got) != len(of.ids) {
			t.Errorf("%q are %q, %v", of.ids, got, err)
		}
	}
}
