package saved

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

func (p *objectPlace) Stage(owner string, o Options) error {
	if err := objects.CanWrite(p.dir); err != nil {
		return err
	}
	if err := p.mayReplace(o); err != nil {
		return err
	}
	p.id = uuid.NewString()
	return objects.Put(context.Background(), p.stagedObject(), []byte(owner+"\n"+p.id+"\n"))
}

// adopt lists what another program has saved, or what was copied here, in a marker: it can be read until it is
// replaced, and stays if it is not.
func (p *objectPlace) adopt(found []string) error {
	if !slices.ContainsFunc(found, func(rel string) bool { return strings.HasPrefix(path.Base(rel), "part-") }) {
		return nil
	}
	all, err := files.Resolve(p.dir)
	if err != nil {
		return err
	}
	m := &files.Marker{}
	for _, f := range all {
		rel := strings.TrimPrefix(f.Path, objects.Join(p.dir)+"/")
		m.Files = append(m.Files, files.MarkedFile{Name: rel, Size: f.Size})
	}
	return objects.Put(context.Background(), objects.Join(p.dir, files.MarkerName), m.Encode())
}

// mayReplace refuses what a save must not replace, or append to, as it does for a directory. What a save has left that
// did not come to its end may be replaced.
func (p *objectPlace) mayReplace(o Options) error {
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
	case o.Append && m == nil && !slices.Contains(found, files.StagedName):
		return notSaved(p.dir)
	case o.Append:
		return nil
	case !o.Overwrite && !(m == nil && slices.Contains(found, files.StagedName)):
		return notEmpty(p.dir)
	}
	for _, rel := range found {
		if !isOwnObject(rel) {
			return holdsOther(p.dir, rel)
		}
	}
	if m == nil && !slices.Contains(found, files.StagedName) {
		return p.adopt(found)
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

func (p *objectPlace) Parts(ctx context.Context, part int, attempt uint64) Files {
	return objectParts{ctx, p.dir, fmt.Sprintf(partName+"-%d", part, attempt)}
}

func (p *objectPlace) Commit(owner string, parts [][]Part, o Options) (rows int64, err error) {
	own := &files.Marker{}
	rows = listParts(own, parts)
	m := &files.Marker{Owner: owner, Rows: rows, Added: rows, Files: own.Files}
	was, err := p.look(m, o)
	if err != nil {
		p.giveUp(own)
		return 0, err
	}
	if err := p.mark(m, was); err != nil {
		return 0, err // the marker may be there: parts that it lists stay
	}
	return rows, p.clean(m)
}

// look returns what the store says of the marker that is replaced, if there is one, and has a marker list the parts
// that an append finds. Of two saves that look at the same marker one replaces it; one that another has followed does
// not.
func (p *objectPlace) look(m *files.Marker, o Options) (was objects.Info, err error) {
	was, err = objects.Stat(context.Background(), objects.Join(p.dir, files.MarkerName))
	there := !errors.Is(err, fs.ErrNotExist)
	if !there {
		was, err = objects.Info{}, nil
	}
	if err == nil {
		err = p.stillOurs() // what comes after it changes the marker
	}
	switch {
	case err != nil || !there:
		return was, err
	case o.Append:
		return was, p.after(m)
	case !o.Overwrite:
		return was, p.overtaken()
	}
	return was, nil
}

// after has a marker list the parts that are there, before its own.
func (p *objectPlace) after(m *files.Marker) error {
	before, err := files.ReadMarker(p.dir)
	if err != nil || before == nil {
		return err
	}
	m.Files, m.Rows = slices.Concat(before.Files, m.Files), before.Rows+m.Added
	m.Owner = before.OwnersAnd(m.Owner, m.Added)
	return m.SameKeys(p.dir)
}

// giveUp removes the parts of a save that is not committed.
func (p *objectPlace) giveUp(own *files.Marker) {
	if p.stillOurs() == nil {
		_ = p.dropStaged() // why it is given up is more important
		return
	}
	for _, f := range own.Files {
		_ = objects.Remove(context.Background(), objects.Join(p.dir, f.Name)) // the next save removes what stays
	}
}

// listParts adds the parts that tasks have written to a marker.
func listParts(m *files.Marker, parts [][]Part) (rows int64) {
	for _, written := range parts {
		for _, w := range written {
			m.Files = append(m.Files, files.MarkedFile{Name: w.Name, Size: w.Size})
			rows += w.Rows
		}
	}
	return rows
}

// stillOurs refuses to commit where another save has begun: it will remove the parts.
func (p *objectPlace) stillOurs() error {
	_, id, err := p.staged()
	if err == nil && id != p.id {
		return p.overtaken()
	}
	return err
}

// staged returns whose save has begun last, and which; neither where none has.
func (p *objectPlace) staged() (owner, id string, err error) {
	raw, err := objects.Get(context.Background(), p.stagedObject(), 1<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return "", "", nil
	}
	owner, id, _ = strings.Cut(strings.TrimSuffix(string(raw), "\n"), "\n")
	return owner, id, err
}

func (p *objectPlace) overtaken() error {
	return fault.New(fault.BadInput, "save to", p.dir, errOvertaken).
		WithHint("save one after the other, or each into a place of its own")
}

// mark writes the marker in place of the one that was there, or of none; another is that of another save.
func (p *objectPlace) mark(m *files.Marker, was objects.Info) (err error) {
	name := objects.Join(p.dir, files.MarkerName)
	switch ctx := context.Background(); {
	case was.Name == "":
		err = objects.PutNew(ctx, name, m.Encode())
	case was.Tag == "": // of a store that has none
		err = objects.Put(ctx, name, m.Encode())
	default:
		err = objects.PutInPlace(ctx, was, m.Encode())
	}
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

// drop removes the parts of a save that is given up, or of one that was completed before its job was started again, and
// what says that it had begun.
func (p *objectPlace) Drop(owner string) error {
	by, id, err := p.staged()
	if err != nil || id == "" || id != p.id && (owner == "" || by != owner) {
		return err // they are another save's, or will be removed by the next
	}
	p.id = id
	return p.dropStaged()
}

// dropStaged removes the parts of the save that is staged, but what a marker lists.
func (p *objectPlace) dropStaged() error {
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

// removeAll removes the objects that match; that which says that a save has begun is the last. Where another save has
// begun meanwhile, what is there may be its own, and it removes the rest.
func (p *objectPlace) removeAll(match func(rel string) bool) error {
	found, err := p.found()
	if err != nil {
		return err
	}
	if err := p.stillOurs(); err != nil { // since before the list was made
		return passed(err)
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
	if err := p.stillOurs(); err != nil {
		return passed(err)
	}
	return objects.Remove(context.Background(), p.stagedObject())
}

// passed returns no error where a save that is complete is followed by another.
func passed(err error) error {
	if errors.Is(err, errOvertaken) {
		return nil
	}
	return err
}

var errOvertaken = errors.New("another save into it has begun meanwhile")

// objectParts makes the objects of a part.
type objectParts struct {
	ctx       context.Context
	dir, base string
}

func (p objectParts) Create(keys string) (File, error) {
	name := path.Join(keys, p.base+"-"+strings.ReplaceAll(uuid.NewString(), "-", "")[:12])
	w, err := objects.Create(p.ctx, objects.Join(p.dir, name))
	if err != nil {
		return nil, err
	}
	return objectPart{w, name}, nil
}

func (p objectParts) Remove(name string) {
	// Its task has perhaps been given up; and what is left over is removed by the commit.
	_ = objects.Remove(context.WithoutCancel(p.ctx), objects.Join(p.dir, name))
}

type objectPart struct {
	*objects.Writer
	rel string
}

func (p objectPart) Name() string { return p.Writer.Name }

func (p objectPart) Keep(bool) (string, error) { return p.rel, p.Close() }

func (p objectPart) Drop() { p.Abort() }
