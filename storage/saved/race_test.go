package saved

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/volley-engine/volley/internal/seeds"
	"github.com/volley-engine/volley/storage/input/files"
	"github.com/volley-engine/volley/storage/objects"
	"github.com/volley-engine/volley/storage/objects/storetest"
)

// racer is a save to a store, a step at a time.
type racer struct {
	objectPlace
	name  string
	o     Options
	next  int
	made  *files.Marker
	was   objects.Info
	saved bool
	why   error
}

const racerSteps = 5

// step carries out the next step, unless one has failed.
func (r *racer) step() {
	r.next++
	if r.why != nil {
		return
	}
	switch r.next {
	case 1:
		r.why = r.Stage(r.name, r.o)
	case 2:
		part := "part-00000-1-" + strings.Repeat(r.name, 12)
		r.made = &files.Marker{Owner: r.name, Rows: 1, Added: 1, Files: []files.MarkedFile{{Name: part, Size: 2}}}
		r.why = objects.Put(context.Background(), objects.Join(r.dir, part), []byte(r.name+"\n"))
	case 3:
		own := *r.made
		if r.was, r.why = r.look(r.made, r.o); r.why != nil {
			r.giveUp(&own)
		}
	case 4:
		r.why = r.mark(r.made, r.was)
		r.saved = r.why == nil
	case 5:
		r.why = r.clean(r.made)
	}
}

// TestTwoSavesInEveryOrder: a save that has ended well is read, or was replaced by one that has, whole; an append
// is never lost; and what is read is there. A third of the orders is enough where no soak is asked for.
func TestTwoSavesInEveryOrder(t *testing.T) {
	root := storetest.S3(t)
	modes := map[string]Options{"new": {}, "overwrite": {Overwrite: true}, "append": {Append: true}}
	for first, a := range modes {
		for second, b := range modes {
			if first > second {
				continue // it is the other's turn
			}
			for n, order := range storetest.Orders(racerSteps, racerSteps) {
				if n%3 != 0 && !seeds.Soaking() {
					continue
				}
				dir := fmt.Sprintf("%s/%s-%s-%d", root, first, second, n)
				if first != "new" && second != "new" {
					savedBefore(t, dir)
				}
				savers := []*racer{{name: "a", o: a, objectPlace: objectPlace{dir: dir}},
					{name: "b", o: b, objectPlace: objectPlace{dir: dir}}}
				for _, who := range order {
					savers[who].step()
				}
				if wrong := wrongAfter(savers); wrong != "" {
					t.Fatalf("%s and %s in the order %v: %s", first, second, order, wrong)
				}
			}
		}
	}
}

// savedBefore makes a place in which x was saved.
func savedBefore(t *testing.T, dir string) {
	t.Helper()
	m := &files.Marker{Owner: "x", Rows: 1, Added: 1, Files: []files.MarkedFile{{Name: "part-00000", Size: 2}}}
	for name, text := range map[string]string{"part-00000": "x\n", files.MarkerName: string(m.Encode())} {
		if err := objects.Put(t.Context(), dir+"/"+name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
}

// wrongAfter returns what is wrong with a place after two saves.
func wrongAfter(savers []*racer) string {
	read, err := textOf(savers[0].dir)
	saved := savers[0].saved || savers[1].saved
	if err != nil && saved {
		return fmt.Sprintf("%q cannot be read: %v", read, err)
	}
	for n, s := range savers {
		other := savers[1-n]
		replaced := other.o.Overwrite && other.saved
		if s.saved && !strings.Contains(read, s.name) && !replaced {
			return fmt.Sprintf("%s has been saved, and %q is read", s.name, read)
		}
		if !s.saved && strings.Contains(read, s.name) && saved {
			return fmt.Sprintf("%s has failed (%v), and %q is read", s.name, s.why, read)
		}
	}
	if strings.Count(read, "a") > 1 || strings.Count(read, "b") > 1 || strings.Count(read, "x") > 1 {
		return fmt.Sprintf("%q is read", read)
	}
	return ""
}

// textOf returns what a place has, by its marker.
func textOf(dir string) (string, error) {
	all, err := files.Resolve(dir)
	if err != nil {
		return "", err
	}
	var text string
	for _, f := range all {
		raw, err := files.ReadFile(f.Path)
		if err != nil {
			return text, err
		}
		text += strings.TrimSpace(string(raw))
	}
	return text, nil
}
