package crash

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/volley-engine/volley/internal/disk"
)

// inode is a file or a directory, whatever its names are.
type inode struct {
	data []byte
	kids map[string]*inode // by name; nil of a file
}

func newDir() *inode { return &inode{kids: map[string]*inode{}} }

// effect is what an operation changes: bytes of a file, or a name.
type effect struct {
	op   int // that it is of
	safe int // number of the operation after which it cannot be lost
	what string

	file   *inode // whose bytes change; nil where a name does
	write  bool   // data at offset; else the length is offset
	offset int64
	data   []byte

	from     *inode // directory that loses a name; nil where none does
	fromName string
	to       *inode // directory that gets a name; nil where none does
	toName   string
	node     *inode  // that gets it
	also     *effect // on another name, at once; nil where there is none
}

// mayBeLost reports whether an effect may be missing after the given number of operations.
func (e *effect) mayBeLost(ops int) bool { return e.safe >= ops }

// compiler finds out what operations change, one after the other.
type compiler struct {
	r       *Recording
	live    *inode
	files   map[int]*inode
	names   map[int]string // by which files were opened
	effects []*effect
}

// compile turns operations into their effects on a first state.
func (r *Recording) compile() (base *inode, effects []*effect, err error) {
	made := map[*inode]*inode{}
	c := &compiler{r: r, live: r.base.clone(made), files: map[int]*inode{}, names: map[int]string{}}
	for i, op := range r.ops {
		if op.Path != "" && !r.inside(op.Path) && !r.inside(op.To) {
			continue
		}
		if err := c.take(i, op); err != nil {
			return nil, nil, fmt.Errorf("operation %d: %w", i, err)
		}
	}
	return c.base(made), c.effects, nil
}

// base returns the first state, of the very inodes that effects are about.
func (c *compiler) base(live map[*inode]*inode) *inode {
	var at func(old *inode) *inode
	at = func(old *inode) *inode {
		n := live[old]
		n.data = old.data
		if old.kids != nil {
			n.kids = map[string]*inode{}
			for name, kid := range old.kids {
				n.kids[name] = at(kid)
			}
		}
		return n
	}
	return at(c.r.base)
}

// clone returns a copy; made has the copy of each.
func (n *inode) clone(made map[*inode]*inode) *inode {
	out := &inode{data: n.data}
	if n.kids != nil {
		out.kids = map[string]*inode{}
		for name, kid := range n.kids {
			out.kids[name] = kid.clone(made)
		}
	}
	made[n] = out
	return out
}

func (c *compiler) take(i int, op disk.Op) error {
	if op.To != "" && c.r.inside(op.To) != c.r.inside(op.Path) {
		return fmt.Errorf("%s is renamed to %s: one of them is not recorded", op.Path, op.To)
	}
	switch op.Kind {
	case disk.Synced:
		c.settle(i, func(e *effect) bool { return e.file != nil && e.file == c.files[op.File] })
		return nil
	case disk.Written, disk.Resized:
		if f := c.files[op.File]; f != nil { // else it is a file of elsewhere
			c.change(i, f, op)
		}
		return nil
	case disk.SyncedDir:
		dir, err := c.find(op.Path)
		c.settle(i, func(e *effect) bool { return e.in(dir) })
		return err
	}
	return c.takeName(i, op)
}

// takeName takes an operation on names in.
func (c *compiler) takeName(i int, op disk.Op) error {
	e := &effect{op: i, safe: math.MaxInt}
	var err error
	if op.File > 0 {
		c.names[op.File] = c.short(op.Path)
	}
	switch op.Kind {
	case disk.Opened:
		c.files[op.File], err = c.find(op.Path)
		return err
	case disk.Created, disk.MadeDir:
		e.node = &inode{}
		if op.Kind == disk.MadeDir {
			e.node = newDir()
		} else {
			c.files[op.File] = e.node
		}
		e.to, e.toName, err = c.parent(op.Path)
		e.what = "the name " + c.short(op.Path)
	case disk.Removed:
		e.from, e.fromName, err = c.parent(op.Path)
		e.what = "the removal of " + c.short(op.Path)
	case disk.Renamed:
		if e.node, err = c.find(op.Path); err != nil {
			return err
		}
		if e.from, e.fromName, err = c.parent(op.Path); err == nil {
			e.to, e.toName, err = c.parent(op.To)
		}
		e.what = "the renaming of " + c.short(op.Path) + " to " + c.short(op.To)
	case disk.Swapped:
		e.what = "the swapping of " + c.short(op.Path) + " and " + c.short(op.To)
		e.also = &effect{}
		if e.to, e.toName, e.also.node, err = c.place(op.Path); err == nil {
			e.also.to, e.also.toName, e.node, err = c.place(op.To)
		}
	default:
		return fmt.Errorf("kind %d", op.Kind)
	}
	if err == nil {
		e.name()
		c.effects = append(c.effects, e)
	}
	return err
}

// name changes the names of directories as they are now.
func (e *effect) name() {
	if e.from != nil {
		delete(e.from.kids, e.fromName)
	}
	if e.to != nil {
		e.to.kids[e.toName] = e.node
	}
	if e.also != nil {
		e.also.name()
	}
}

// in reports whether an effect is on a name in a directory.
func (e *effect) in(dir *inode) bool {
	return e.file == nil && (e.from == dir || e.to == dir || e.also != nil && e.also.in(dir))
}

// change takes a change of a file's bytes in. One that goes on where the last one
// ended is a part of it, unless something was promised between.
func (c *compiler) change(i int, f *inode, op disk.Op) {
	if op.Kind == disk.Written && len(c.effects) > 0 {
		last := c.effects[len(c.effects)-1]
		if last.file == f && last.write && last.safe == math.MaxInt && last.offset+int64(len(last.data)) == op.Offset &&
			last.op == i-1 && !slices.Contains(c.r.promise, i) {
			last.data, last.op = append(last.data[:len(last.data):len(last.data)], op.Data...), i
			return
		}
	}
	c.effects = append(c.effects, &effect{op: i, safe: math.MaxInt, file: f, write: op.Kind == disk.Written,
		offset: op.Offset, data: op.Data,
		what: fmt.Sprintf("%d bytes at %d of %s", len(op.Data), op.Offset, c.names[op.File])})
}

// settle makes effects safe from an operation on.
func (c *compiler) settle(i int, which func(*effect) bool) {
	for _, e := range c.effects {
		if e.safe == math.MaxInt && which(e) {
			e.safe = i
		}
	}
}

func (c *compiler) short(path string) string { return strings.TrimPrefix(path, c.r.root+"/") }

// parent returns the directory of a path as it is now, and the name in it.
func (c *compiler) parent(path string) (*inode, string, error) {
	if path == c.r.root {
		return nil, "", fmt.Errorf("%s itself is changed: record what is above it", path)
	}
	dir, err := c.find(filepath.Dir(path))
	return dir, filepath.Base(path), err
}

// place returns a path's directory, its name in it, and what lies there now.
func (c *compiler) place(path string) (dir *inode, name string, node *inode, err error) {
	if node, err = c.find(path); err == nil {
		dir, name, err = c.parent(path)
	}
	return dir, name, node, err
}

// find returns what lies at a path now.
func (c *compiler) find(path string) (*inode, error) {
	at := c.live
	rel, err := filepath.Rel(c.r.root, path)
	if err != nil || rel == "." {
		return at, err
	}
	for name := range strings.SplitSeq(rel, string(filepath.Separator)) {
		next := at.kids[name]
		if next == nil {
			return nil, fmt.Errorf("%s was made by something that is not recorded", path)
		}
		at = next
	}
	return at, nil
}
