package rdd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/input/files"
	"github.com/volley-engine/volley/storage/objects"
)

// Objects cannot be renamed. A save writes its parts under the names that they keep, of which no other attempt has the
// same, and then the marker, by one write: what it does not list is not read, and is removed.

// objectPlace is the objects below a name.
type objectPlace struct {
	dir string
	id  string // of the save that is staged
}

// stagedObject returns the name of the object that says that a save has begun, and which one.
func (p *objectPlace) stagedObject() string { return objects.Join(p.dir, files.StagedName) }

func (p *objectPlace) stage(owner string, o saveOptions) error {
	if err := objects.CanWrite(p.dir); err != nil {
		return err
	}
	if err := p.mayReplace(o); err != nil {
		return err
	}
	p.id = uuid.NewString()
	return objects.Put(context.Background(), p.stagedObject(), []byte(owner+"\n"+p.id+"\n"))
}

// mayReplace refuses what a save must not replace, or append to, as it does for a directory. What a save has left that
// did not come to its end may be replaced.
func (p *objectPlace) mayReplace(o saveOptions) error {
	m, err := files.ReadMarker(p.dir)
	if err != nil {
		return err
	}
	found, err := p.found()
	switch {
	case err != nil:
		return err
	case len(found) == 0:
		return nil
	case o.append && m == nil && !slices.Contains(found, files.StagedName):
		return notSaved(p.dir)
	case o.append:
		return nil
	case !o.overwrite && !(m == nil && slices.Contains(found, files.StagedName)):
		return notEmpty(p.dir)
	}
	for _, rel := range found {
		if !isOwnObject(rel) {
			return holdsOther(p.dir, rel)
		}
	}
	return nil
}

// found returns the names of the objects of the place, below its own.
func (p *objectPlace) found() (names []string, err error) {
	root := objects.Join(p.dir) + "/"
	err = objects.List(context.Background(), root, func(i objects.Info) bool {
		if !strings.HasSuffix(i.Name, "/") { // some programs write directories
			names = append(names, strings.TrimPrefix(i.Name, root))
		}
		return true
	})
	return names, err
}

// isOwnObject reports whether a name is one that saves give.
func isOwnObject(rel string) bool {
	dir, base := path.Split(rel)
	for d := range strings.SplitSeq(strings.TrimSuffix(dir, "/"), "/") {
		if d != "" && !strings.Contains(d, "=") {
			return false
		}
	}
	return base == files.StagedName || ownParts.MatchString(base)
}

func (p *objectPlace) parts(ctx context.Context, part int, attempt uint64) partFiles {
	return objectParts{ctx, p.dir, fmt.Sprintf(partName+"-%d", part, attempt)}
}

func (p *objectPlace) commit(owner string, raws [][]byte, o saveOptions) (rows int64, err error) {
	own := &files.Marker{}
	if rows, err = listParts(own, raws); err != nil {
		return 0, err
	}
	m, err := p.marker(own, owner, rows, o)
	if err != nil {
		p.giveUp(own)
		return 0, err
	}
	if err := p.mark(m, !o.append && !o.overwrite); err != nil {
		return 0, err // the marker may be there: parts that it lists stay
	}
	return rows, p.clean(m)
}

// marker returns the marker of a save's own parts, after those that an append finds.
func (p *objectPlace) marker(own *files.Marker, owner string, rows int64, o saveOptions) (*files.Marker, error) {
	if err := p.stillOurs(); err != nil {
		return nil, err
	}
	m := &files.Marker{Owner: owner, Rows: rows, Added: rows, Files: own.Files}
	if !o.append {
		return m, nil
	}
	before, err := files.ReadMarker(p.dir)
	if err != nil || before == nil {
		return m, err
	}
	m.Files, m.Rows = slices.Concat(before.Files, own.Files), before.Rows+rows
	m.Owner = before.OwnersAnd(owner, rows)
	return m, m.SameKeys(p.dir)
}

// giveUp removes the parts of a save that is not committed.
func (p *objectPlace) giveUp(own *files.Marker) {
	if p.stillOurs() == nil {
		_ = p.drop() // why it is given up is more important
		return
	}
	for _, f := range own.Files {
		_ = objects.Remove(context.Background(), objects.Join(p.dir, f.Name)) // the next save removes what stays
	}
}

// listParts adds the parts that tasks have written to a marker.
func listParts(m *files.Marker, raws [][]byte) (rows int64, err error) {
	for _, raw := range raws {
		var written []stagedPart
		if err := cborReading.Unmarshal(raw, &written); err != nil {
			return 0, err
		}
		for _, w := range written {
			m.Files = append(m.Files, files.MarkedFile{Name: w.Name, Size: w.Size})
			rows += w.Rows
		}
	}
	return rows, nil
}

// stillOurs refuses to commit where another save has begun: it will remove the parts.
func (p *objectPlace) stillOurs() error {
	raw, err := objects.Get(context.Background(), p.stagedObject(), 1<<20)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !bytes.HasSuffix(raw, []byte("\n"+p.id+"\n")) {
		return p.overtaken()
	}
	return err
}

func (p *objectPlace) overtaken() error {
	return fault.Newf(fault.BadInput, "save to", p.dir, "another save into it has begun meanwhile").
		WithHint("save one after the other, or each into a place of its own")
}

// mark writes the marker; one that is there already, where none was before, is another save's.
func (p *objectPlace) mark(m *files.Marker, fresh bool) error {
	put := objects.Put
	if fresh {
		put = objects.PutNew
	}
	name := objects.Join(p.dir, files.MarkerName)
	err := put(context.Background(), name, m.Encode())
	if err == nil {
		return nil
	}
	// A write of which no answer came may have been carried out.
	if now, gerr := objects.Get(context.Background(), name, 1<<30); gerr == nil && bytes.Equal(now, m.Encode()) {
		return nil
	}
	if errors.Is(err, fs.ErrExist) {
		err = p.overtaken()
	}
	return err
}

// clean removes what a marker does not list.
func (p *objectPlace) clean(m *files.Marker) error {
	listed := map[string]bool{files.MarkerName: true}
	for _, f := range m.Files {
		listed[f.Name] = true
	}
	return p.removeAll(func(rel string) bool { return !listed[rel] && isOwnObject(rel) })
}

// drop removes the parts of a save that is given up, and what says that it had begun. What a marker lists stays.
func (p *objectPlace) drop() error {
	if p.id == "" || p.stillOurs() != nil {
		return nil // they are another save's, or will be removed by the next
	}
	m, err := files.ReadMarker(p.dir)
	if err != nil {
		return err
	}
	if m == nil {
		m = &files.Marker{}
	}
	return p.clean(m)
}

// removed is how many objects are removed at a time.
const removed = 16

// removeAll removes the objects that match; that which says that a save has begun is the last.
func (p *objectPlace) removeAll(match func(rel string) bool) error {
	found, err := p.found()
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(context.Background())
	g.SetLimit(removed)
	for _, rel := range found {
		if rel != files.StagedName && match(rel) {
			g.Go(func() error { return objects.Remove(ctx, objects.Join(p.dir, rel)) })
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return objects.Remove(context.Background(), p.stagedObject())
}

// objectParts makes the objects of a part.
type objectParts struct {
	ctx       context.Context
	dir, base string
}

func (p objectParts) create(keys string) (partFile, error) {
	name := path.Join(keys, p.base+"-"+strings.ReplaceAll(uuid.NewString(), "-", "")[:12])
	w, err := objects.Create(p.ctx, objects.Join(p.dir, name))
	if err != nil {
		return nil, err
	}
	return objectPart{w, name}, nil
}

func (p objectParts) remove(name string) {
	// Its task has perhaps been given up; and what is left over is removed by the commit.
	_ = objects.Remove(context.WithoutCancel(p.ctx), objects.Join(p.dir, name))
}

type objectPart struct {
	*objects.Writer
	rel string
}

func (p objectPart) Name() string { return p.Writer.Name }

func (p objectPart) keep(bool) (string, error) { return p.rel, p.Close() }

func (p objectPart) drop() { p.Abort() }
