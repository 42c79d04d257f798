package rdd_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/input/files"
	"github.com/volley-engine/volley/storage/objects"
	"github.com/volley-engine/volley/storage/objects/storetest"
)

// TestObjectsAreAsFiles: what is saved to a store and read from it has the rows that a directory gives, in each format,
// with columns that directories have too; by its name, and by a pattern.
func TestObjectsAreAsFiles(t *testing.T) {
	want := visitTexts(visits())
	for _, root := range storetest.Roots(t) {
		for kind, f := range tableFormats[visit]() {
			for name, options := range map[string][]rdd.SaveOption{kind: nil,
				kind + " by country": {rdd.PartitionedBy("country", "year")}} {
				dir := root + "/" + name
				n, err := theAction(t, func(g *rdd.Graph) rdd.Action[int64] {
					return f.save(rdd.Parallelize(g, 3, visits()...), dir, options...)
				})
				if err != nil || n != int64(len(want)) {
					t.Fatalf("%s: %d rows, %v", dir, n, err)
				}
				from := []string{dir}
				if options == nil {
					from = append(from, dir+"/part-*")
				}
				for _, uri := range from {
					rows, err := theAction(t, func(g *rdd.Graph) rdd.Action[[]visit] {
						return rdd.Collect(f.read(g, uri))
					})
					if err != nil || !slices.Equal(visitTexts(rows), want) {
						t.Errorf("%s: %d of %d rows, %v", uri, len(rows), len(want), err)
					}
				}
			}
		}
	}
}

// namesIn returns the objects of a place, below its name.
func namesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := objects.List(t.Context(), dir+"/", func(i objects.Info) bool {
		names = append(names, strings.TrimPrefix(i.Name, dir+"/"))
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestASaveToAStoreAppearsAtOnce: what is there is replaced, added to or refused, by names, as in a directory; what a
// save leaves that fails is gone.
func TestASaveToAStoreAppearsAtOnce(t *testing.T) {
	for _, root := range storetest.Roots(t) {
		dir := root + "/out"
		if err := saveLines(t, dir, "old", 3); err != nil {
			t.Fatal(err)
		}
		before := namesIn(t, dir)
		if len(before) != 4 || !slices.Contains(before, files.MarkerName) {
			t.Errorf("%q", before)
		}
		if err := saveLines(t, dir, "new", 3); err == nil || !strings.Contains(err.Error(), "not empty") {
			t.Error(err)
		}
		if err := failingSave(t, dir, rdd.Overwrite()); err == nil || readLines(t, dir) != "old" {
			t.Errorf("%v, and %s is read", err, readLines(t, dir))
		}
		if err := failingSave(t, dir, rdd.Append()); err == nil || !slices.Equal(namesIn(t, dir), before) {
			t.Errorf("%v leaves %q, before it was %q", err, namesIn(t, dir), before)
		}
		if err := saveLines(t, dir, "new", 2, rdd.Overwrite()); err != nil || readLines(t, dir) != "new" {
			t.Errorf("%v, and %s is read", err, readLines(t, dir))
		}
		if err := saveLines(t, dir, "more", 2, rdd.Append()); err != nil || len(namesIn(t, dir)) != 5 {
			t.Errorf("%v %q", err, namesIn(t, dir))
		}
		lines, err := linesOf(t, dir)
		if err != nil || len(lines) != 60 || lines[0] != "new 0" || lines[30] != "more 0" {
			t.Errorf("%d lines, %v", len(lines), err)
		}
		if err := objects.Put(t.Context(), dir+"/notes.txt", []byte("mine\n")); err != nil {
			t.Fatal(err)
		}
		err = saveLines(t, dir, "new", 2, rdd.Overwrite())
		if err == nil || !strings.Contains(err.Error(), "notes.txt") {
			t.Error(err)
		}
		if err := failingSave(t, root+"/none"); err == nil || len(namesIn(t, root+"/none")) > 0 {
			t.Errorf("%v leaves %q", err, namesIn(t, root+"/none"))
		}
	}
}

// failingSave saves lines of which a part cannot be computed.
func failingSave(t *testing.T, dir string, options ...rdd.SaveOption) error {
	t.Helper()
	_, err := theAction(t, func(g *rdd.Graph) rdd.Action[int64] {
		lines := rdd.MapErr(rdd.Range(g, 0, 30, 3), func(i int64) (string, error) {
			if i == 29 {
				return "", errors.New("row 29 is bad")
			}
			return fmt.Sprint("failed ", i), nil
		})
		return rdd.SaveText(lines, dir, options...)
	})
	return err
}

// TestWhatOthersHaveSavedOutlivesASaveThatFails: what another program has written is read until it is replaced.
func TestWhatOthersHaveSavedOutlivesASaveThatFails(t *testing.T) {
	for _, root := range storetest.Roots(t) {
		for _, success := range []bool{true, false} {
			dir := fmt.Sprint(root, "/others-", success)
			old := map[string]string{"part-00000": "old 0\n", "part-00001": "old 1\n", files.MarkerName: ""}
			for name, text := range old {
				if name == files.MarkerName && !success {
					continue
				}
				if err := objects.Put(t.Context(), dir+"/"+name, []byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			err := failingSave(t, dir, rdd.Overwrite())
			if lines, rerr := linesOf(t, dir); err == nil || rerr != nil || strings.Join(lines, ",") != "old 0,old 1" {
				t.Errorf("%v leaves %q, %v", err, lines, rerr)
			}
			err = saveLines(t, dir, "new", 3, rdd.Overwrite())
			if err != nil || readLines(t, dir) != "new" || len(namesIn(t, dir)) != 4 {
				t.Errorf("%v: %s is read of %q", err, readLines(t, dir), namesIn(t, dir))
			}
		}
	}
}

// TestAKilledSaveToAStoreIsNotRead: parts without a marker are refused by readers, and replaced by the next save.
func TestAKilledSaveToAStoreIsNotRead(t *testing.T) {
	dir := storetest.S3(t) + "/out"
	for name, text := range map[string]string{".staged": "\nid\n", "part-00000-1-0123456789ab": "a\n"} {
		if err := objects.Put(t.Context(), dir+"/"+name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if lines, err := linesOf(t, dir); err == nil || !strings.Contains(err.Error(), "_SUCCESS") {
		t.Errorf("%q %v", lines, err)
	}
	if err := saveLines(t, dir, "new", 3); err != nil || readLines(t, dir) != "new" || len(namesIn(t, dir)) != 4 {
		t.Errorf("%v: %s is read of %q", err, readLines(t, dir), namesIn(t, dir))
	}
}

// TestOfTwoSavesToAStoreOneIsRefused: one that begins while another is at work takes the place; what is read is one of
// them, whole.
func TestOfTwoSavesToAStoreOneIsRefused(t *testing.T) {
	for _, option := range []rdd.SaveOption{rdd.Overwrite(), rdd.Append()} {
		dir := storetest.S3(t) + "/out"
		if err := saveLines(t, dir, "old", 1); err != nil {
			t.Fatal(err)
		}
		_, err := theAction(t, func(g *rdd.Graph) rdd.Action[int64] {
			lines := rdd.MapErr(rdd.Range(g, 0, 30, 1), func(i int64) (string, error) {
				if i == 0 {
					return "", saveLines(t, dir, "new", 2, rdd.Overwrite())
				}
				return fmt.Sprint("late ", i), nil
			})
			return rdd.SaveText(lines, dir, option)
		})
		if err == nil || !strings.Contains(err.Error(), "another save") || readLines(t, dir) != "new" {
			t.Errorf("%v, and %s is read", err, readLines(t, dir))
		}
		if left := namesIn(t, dir); len(left) != 3 { // two parts and the marker
			t.Errorf("%q are left", left)
		}
	}
}

// TestAPartOfAStoreThatIsGoneIsMissed: or one that another has put in its place.
func TestAPartOfAStoreThatIsGoneIsMissed(t *testing.T) {
	for _, damage := range []func(ctx context.Context, part string) error{objects.Remove,
		func(ctx context.Context, part string) error { return objects.Put(ctx, part, []byte("x\n")) }} {
		dir := storetest.S3(t) + "/out"
		if err := saveLines(t, dir, "new", 3); err != nil {
			t.Fatal(err)
		}
		if err := damage(t.Context(), dir+"/"+namesIn(t, dir)[2]); err != nil {
			t.Fatal(err)
		}
		if got := readLines(t, dir); got != "refused" {
			t.Errorf("it is read as %s", got)
		}
	}
}

// TestACheckpointInAStore: a dataset that is kept there is read from there, and a place that is not empty is refused.
func TestACheckpointInAStore(t *testing.T) {
	for _, root := range storetest.Roots(t) {
		dir := root + "/kept"
		for n := range 2 {
			sum, err := theAction(t, func(g *rdd.Graph) rdd.Action[int64] {
				kept := rdd.Checkpoint(rdd.Range(g, 0, 10_000, 5), dir)
				return rdd.Reduce(kept, func(a, b int64) int64 { return a + b })
			})
			if n == 0 && (err != nil || sum != 49_995_000) {
				t.Errorf("%d %v", sum, err)
			}
			if n == 1 && (err == nil || !strings.Contains(err.Error(), "not empty")) {
				t.Errorf("%d %v", sum, err)
			}
			if n == 0 {
				if err := objects.Put(t.Context(), dir+"/more", nil); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
