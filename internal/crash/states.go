package crash

import (
	"crypto/sha256"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// State is what a loss of power may leave.
type State struct {
	// Done is how many operations had been done, Promised how many promises had been
	// made by then.
	Done, Promised int
	// All is set where all operations had been done.
	All bool
	// Lost is what the disk did not have.
	Lost []string
	tree *inode
}

// String returns how the state comes about.
func (s *State) String() string {
	if len(s.Lost) == 0 {
		return fmt.Sprintf("the power fails after %d operations, of which nothing is lost", s.Done)
	}
	return fmt.Sprintf("the power fails after %d operations, and the disk has not got %s", s.Done,
		strings.Join(s.Lost, "; "))
}

// Put makes a directory of the state.
func (s *State) Put(t testing.TB) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := s.tree.put(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func (n *inode) put(path string) error {
	if n.kids == nil {
		return os.WriteFile(path, n.data, 0o600)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	for name, kid := range n.kids {
		if err := kid.put(filepath.Join(path, name)); err != nil {
			return err
		}
	}
	return nil
}

// fate is what becomes of an effect.
type fate uint8

const (
	kept   fate = iota
	lost        // nothing of it is there
	halved      // the first half of a write is there
	zeroed      // a write's length is there, and no byte
)

var fates = map[fate]string{lost: "", halved: "half of ", zeroed: "a byte of "}

// fewEffects is how many effects that may be lost are combined in every way; of more, so
// many ways are drawn.
const (
	fewEffects = 6
	drawn      = 24
)

// States returns the states that may be found after each operation, each once. They are
// the same at each call.
func (r *Recording) States(t testing.TB) iter.Seq[*State] {
	t.Helper()
	base, effects, err := r.compile()
	if err != nil {
		t.Fatal(err)
	}
	return func(yield func(*State) bool) {
		seen := map[[sha256.Size]byte]bool{}
		for ops := 0; ops <= len(r.ops); ops++ {
			if !r.differs(effects, ops) {
				continue
			}
			done := slices.DeleteFunc(slices.Clone(effects), func(e *effect) bool { return e.op >= ops })
			for _, chosen := range choices(done, ops) {
				s := r.state(base, done, chosen, ops)
				sum := s.sum()
				if seen[sum] {
					continue
				}
				seen[sum] = true
				if !yield(s) {
					return
				}
			}
		}
	}
}

// differs reports whether after the given number of operations other states may be found, or others
// are allowed, than after one less.
func (r *Recording) differs(effects []*effect, ops int) bool {
	return ops == 0 || ops == len(r.ops) || slices.Contains(r.promise, ops) ||
		slices.ContainsFunc(effects, func(e *effect) bool { return e.op == ops-1 || e.safe == ops-1 })
}

// sum returns a digest of the state: what a reader finds, and what was promised to it.
func (s *State) sum() [sha256.Size]byte {
	h := sha256.New()
	fmt.Fprintf(h, "%d %v\n", s.Promised, s.All)
	s.tree.list(h, "")
	return [sha256.Size]byte(h.Sum(nil))
}

func (n *inode) list(w interface{ Write([]byte) (int, error) }, path string) {
	if n.kids == nil {
		fmt.Fprintf(w, "%q %x\n", path, sha256.Sum256(n.data))
		return
	}
	fmt.Fprintf(w, "%q/\n", path)
	for _, name := range slices.Sorted(maps.Keys(n.kids)) {
		n.kids[name].list(w, path+"/"+name)
	}
}

// choices returns the fates of effects, those that cannot be lost kept.
func choices(done []*effect, ops int) (all [][]fate) {
	var open []int
	for i, e := range done {
		if e.mayBeLost(ops) {
			open = append(open, i)
		}
	}
	choose := func(of func(k, i int) fate) {
		c := make([]fate, len(done))
		for k, i := range open {
			c[i] = of(k, i)
		}
		all = append(all, c)
	}
	when := func(is bool) fate {
		if is {
			return lost
		}
		return kept
	}
	choose(func(int, int) fate { return kept })
	choose(func(_, i int) fate { return when(done[i].file != nil) })
	choose(func(_, i int) fate { return when(done[i].file == nil) })
	for one := range open {
		choose(func(k, _ int) fate { return when(k == one) })
		choose(func(k, _ int) fate { return when(k != one) })
		choose(func(k, _ int) fate { return when(k >= one) })
		if e := done[open[one]]; e.write {
			choose(func(k, _ int) fate { return map[bool]fate{true: halved}[k == one] })
			choose(func(k, _ int) fate { return map[bool]fate{true: zeroed}[k == one] })
		}
	}
	if len(open) <= fewEffects {
		for mask := range 1 << len(open) {
			choose(func(k, _ int) fate { return when(mask>>k&1 == 1) })
		}
		return all
	}
	rng := rand.New(rand.NewPCG(uint64(ops), uint64(len(open))))
	for range drawn {
		choose(func(_, i int) fate {
			if done[i].write {
				return fate(rng.IntN(4))
			}
			return when(rng.IntN(2) == 0)
		})
	}
	return all
}

// state returns what chosen fates come to.
func (r *Recording) state(base *inode, done []*effect, chosen []fate, ops int) *State {
	made := map[*inode]*inode{}
	s := &State{Done: ops, All: ops == len(r.ops), tree: base.clone(made)}
	for _, p := range r.promise {
		if p <= ops {
			s.Promised++
		}
	}
	at := func(n *inode) *inode { // its copy in this state
		if n == nil {
			return nil
		}
		if made[n] == nil {
			made[n] = &inode{}
			if n.kids != nil {
				made[n] = newDir()
			}
		}
		return made[n]
	}
	for i, e := range done {
		if chosen[i] != kept {
			s.Lost = append(s.Lost, fates[chosen[i]]+e.what)
		}
		switch {
		case e.file != nil:
			e.bytes(at(e.file), chosen[i])
		case chosen[i] == kept:
			e.of(at).name()
		}
	}
	return s
}

// of returns an effect on the copies of what it is on.
func (e *effect) of(at func(*inode) *inode) *effect {
	if e == nil {
		return nil
	}
	return &effect{from: at(e.from), fromName: e.fromName, to: at(e.to), toName: e.toName, node: at(e.node),
		also: e.also.of(at)}
}

// bytes changes a file's content.
func (e *effect) bytes(f *inode, what fate) {
	if what == lost {
		return
	}
	if !e.write {
		f.data = slices.Clone(f.data)
		if int64(len(f.data)) > e.offset {
			f.data = f.data[:e.offset]
		}
		f.grow(e.offset)
		return
	}
	data := e.data
	if what == halved {
		data = data[:len(data)/2]
	}
	f.data = slices.Clone(f.data)
	f.grow(e.offset + int64(len(data)))
	if what != zeroed {
		copy(f.data[e.offset:], data)
	}
}

// grow gives a file at least a length.
func (n *inode) grow(size int64) {
	if short := size - int64(len(n.data)); short > 0 {
		n.data = append(n.data, make([]byte, short)...)
	}
}
