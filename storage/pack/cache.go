package pack

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/storage/input"
)

// packVersion is part of every pack's identity: raise it when the layout of
// files or the order of rows changes.
const packVersion = 3

// Cache keeps packs under a directory, by identity, within a budget of bytes.
// Several processes may share it: a pack is built in a temporary directory
// under an exclusive lock and appears whole, by one rename.
type Cache struct {
	dir    string
	budget int64
}

// Pack is a built pack, held against eviction until it is closed.
type Pack struct {
	Meta  *Meta
	Dir   string
	Found bool // it was there already
	lock  *os.File
}

// OpenCache prepares a directory for packs and removes leftovers of killed
// runs. budget 0 is four fifths of the free space.
func OpenCache(dir string, budget int64) (*Cache, error) {
	for _, d := range []string{"packs", "tmp"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return nil, disk.WriteError("use the data directory", dir, err)
		}
	}
	if err := unix.Access(dir, unix.W_OK); err != nil {
		return nil, disk.WriteError("use the data directory", dir, err)
	}
	c := &Cache{dir: dir, budget: budget}
	if budget == 0 {
		c.budget = c.defaultBudget()
	}
	c.sweep()
	return c, nil
}

func (c *Cache) defaultBudget() int64 {
	free, err := disk.Free(c.dir)
	if err != nil {
		return 64 << 30
	}
	return (int64(free) + c.size()) / 5 * 4
}

// sweep removes build directories whose builder no longer holds its lock.
func (c *Cache) sweep() {
	entries, _ := os.ReadDir(filepath.Join(c.dir, "tmp"))
	for _, e := range entries {
		path := filepath.Join(c.dir, "tmp", e.Name())
		if strings.HasPrefix(e.Name(), unlocked) && time.Since(modTime(path)) < time.Hour {
			continue // its builder is about to lock it
		}
		if lock, err := disk.TryLock(filepath.Join(path, ".lock"), unix.LOCK_EX); err == nil && lock != nil {
			os.RemoveAll(path)
			lock.Close()
		} else if err != nil && time.Since(modTime(path)) > time.Hour {
			os.RemoveAll(path)
		}
	}
}

func modTime(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Now()
	}
	return info.ModTime()
}

// unlocked begins the name of a directory that is not locked yet: sweeping skips
// it.
const unlocked = "new-"

// TempDir makes a directory that lives until the returned function is called
// or the process dies.
func (c *Cache) TempDir(purpose string) (string, func(), error) {
	made, err := os.MkdirTemp(filepath.Join(c.dir, "tmp"), unlocked+purpose+"-*")
	if err != nil {
		return "", nil, disk.WriteError("use the data directory", c.dir, err)
	}
	dir := filepath.Join(c.dir, "tmp", strings.TrimPrefix(filepath.Base(made), unlocked))
	lock, err := disk.TryLock(filepath.Join(made, ".lock"), unix.LOCK_EX)
	if err == nil {
		err = os.Rename(made, dir)
	}
	if err != nil {
		os.RemoveAll(made)
		return "", nil, disk.WriteError("use the data directory", c.dir, err)
	}
	return dir, func() { os.RemoveAll(dir); lock.Close() }, nil
}

// findOrLock finds a pack, or takes the lock under which it is built. While
// another process builds it this one waits for either: a process that has built a
// pack goes on to use it, and lets go of the lock only much later. A pack that
// was found damaged is not checked again until it has been rebuilt: two processes
// that checked in turn would keep each other from the lock.
func (c *Cache) findOrLock(ctx context.Context, path string) (*Pack, *os.File, error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var damaged time.Time
	for {
		var made time.Time
		if info, err := os.Stat(filepath.Join(path, "pack.json")); err == nil {
			made = info.ModTime()
		}
		if !made.IsZero() && !made.Equal(damaged) {
			p, err := c.find(path)
			if p != nil {
				return p, nil, nil
			}
			if fault.KindOf(err) == fault.Corrupt {
				damaged = made
			}
		}
		lock, err := disk.TryLock(path+".lock", unix.LOCK_EX)
		if err != nil {
			return nil, nil, disk.WriteError("lock", path, err)
		}
		if lock != nil {
			return nil, lock, nil
		}
		select {
		case <-ctx.Done():
			return nil, nil, fault.New(fault.KindOf(ctx.Err()), "wait for", path, ctx.Err())
		case <-tick.C:
		}
	}
}

// ID returns the identity of a pack: a digest of everything that decides its
// bytes, namely the input's description and the options.
func ID(input any, o Options) (plan.Digest, error) {
	raw, err := json.Marshal(struct {
		Version int
		Input   any
		Options Options
	}{packVersion, input, o})
	return plan.DigestOf(raw), err
}

// Get finds a pack by identity or builds it from rows.
func (c *Cache) Get(ctx context.Context, id plan.Digest, rows Rows, o Options, progress func(rows int)) (*Pack, error) {
	path := filepath.Join(c.dir, "packs", id.String())
	p, lock, err := c.findOrLock(ctx, path)
	if p != nil || err != nil {
		return p, err
	}
	defer func() {
		if p == nil {
			lock.Close()
		}
	}()
	if meta, err := readMeta(path); err != nil || whole(path, meta) != nil { // it was not built while we waited
		if err := c.build(ctx, id, path, rows, o, progress); err != nil {
			return nil, err
		}
		defer c.evict(0)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_SH); err != nil {
		return nil, disk.WriteError("lock", path, err)
	}
	meta, err := readMeta(path)
	if errors.Is(err, fs.ErrNotExist) { // evicted between the two locks
		lock.Close()
		return c.Get(ctx, id, rows, o, progress)
	}
	if err != nil {
		return nil, err
	}
	p = &Pack{Meta: meta, Dir: path, lock: lock}
	return p, nil
}

// find opens an existing pack; an error is the reason why it cannot be used,
// and neither pack nor error means that it is being built.
func (c *Cache) find(path string) (*Pack, error) {
	lock, err := disk.TryLock(path+".lock", unix.LOCK_SH)
	if lock == nil || err != nil {
		return nil, nil
	}
	meta, err := readMeta(path)
	if err == nil {
		err = whole(path, meta)
	}
	if err != nil {
		lock.Close()
		return nil, fault.New(fault.Corrupt, "use the pack in", path, err)
	}
	now := time.Now()
	os.Chtimes(filepath.Join(path, "pack.json"), now, now)
	return &Pack{Meta: meta, Dir: path, Found: true, lock: lock}, nil
}

// whole compares the files of a pack with their hashes. Files are not forced to
// disk when a pack is built, disks forget, and a process that can write here can
// change them: an existing pack is verified before use.
func whole(dir string, m *Meta) error {
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, s := range m.Splits {
		g.Go(func() error {
			f, err := os.Open(filepath.Join(dir, SplitFile(i)))
			if err != nil {
				return err
			}
			defer f.Close()
			sum := sha256.New()
			if _, err = io.Copy(sum, f); err != nil || plan.DigestFromBytes(sum.Sum(nil)) != s.SHA256 {
				return fault.Newf(fault.Corrupt, "open", dir, "split %d is not what it was", i)
			}
			return nil
		})
	}
	return g.Wait()
}

// Close lets the pack be evicted.
func (p *Pack) Close() error { return p.lock.Close() }

func (c *Cache) build(ctx context.Context, id plan.Digest, path string, rows Rows, o Options,
	progress func(int)) error {
	tmp, done, err := c.TempDir("build")
	if err != nil {
		return err
	}
	defer done()
	l, err := load(ctx, rows, tmp, &allowance{cache: c}, o, progress)
	if err != nil {
		return err
	}
	defer l.spool.close()
	meta, err := l.meta(id, o)
	if err != nil {
		return err
	}
	if t, ok := rows.(interface{ FeatureNames() []string }); ok {
		meta.Names = t.FeatureNames()
	}
	if t, ok := rows.(interface{ LabelName() string }); ok {
		meta.LabelName = t.LabelName()
	}
	if t, ok := rows.(interface{ WeightName() string }); ok {
		meta.WeightName = t.WeightName()
	}
	if t, ok := rows.(interface{ Preparation() *input.Prepared }); ok {
		if meta.Prepared = t.Preparation(); meta.Prepared != nil && meta.Prepared.Sparse {
			meta.Features = max(meta.Features, meta.Prepared.Width)
		}
	}
	out := filepath.Join(tmp, "pack")
	if err := os.Mkdir(out, 0o700); err != nil {
		return disk.WriteError("write the pack in", c.dir, err)
	}
	if err := assemble(ctx, l, meta, o, out); err != nil {
		return err
	}
	return commitPack(out, path, meta)
}

// commitPack makes a finished directory the pack, at once.
func commitPack(from, to string, meta *Meta) error {
	raw, err := json.MarshalIndent(meta, "", " ")
	if err != nil {
		return err
	}
	if err := disk.WriteFile(filepath.Join(from, "pack.json"), raw, 0o600); err != nil {
		return disk.WriteError("write the pack in", to, err)
	}
	disk.RemoveAll(to)
	if err := disk.Rename(from, to); err != nil {
		return disk.WriteError("write the pack in", to, err)
	}
	return nil
}

// meta determines the pack's layout from the whole input.
func (l *loaded) meta(id plan.Digest, o Options) (*Meta, error) {
	m := &Meta{Version: packVersion, ID: id, Rows: l.rows, Float32: o.Float32, Nonzeros: l.nnz,
		Labels: l.labels.names(), TextLabels: l.labels.text, Weighted: l.weighs, Malformed: l.malformed,
		Missing: l.missing}
	bytes := l.rows * 8
	switch {
	case l.blobs:
		m.Layout = BlobLayout
		for _, h := range l.chunks {
			bytes += int64(h.lens[4])
			if h.chunk != nil {
				bytes += h.chunk.Bytes()
			}
		}
	case l.dense:
		m.Layout, m.Features = DenseLayout, l.width
	default:
		if err := l.sparseMeta(m, o); err != nil {
			return nil, err
		}
	}
	if m.Layout == DenseLayout {
		bytes += l.rows * int64(m.Features*m.valueSize())
	} else {
		bytes += l.nnz * int64(4+m.valueSize())
	}
	n := o.Splits
	if n == 0 {
		n = defaultSplits(l.rows, bytes, m.Features)
	}
	m.Splits = make([]SplitMeta, min(int64(n), l.rows))
	return m, nil
}

// sparseMeta determines the first index and the number of features; mostly full
// rows are stored dense.
func (l *loaded) sparseMeta(m *Meta, o Options) error {
	base := o.IndexBase
	if base == 0 {
		if base = 2; l.lo == 0 || l.zero { // options count from one so that zero means detect
			base = 1
		}
	}
	m.IndexBase = base - 1
	if l.hi >= 0 && int(l.lo) < m.IndexBase {
		return fault.Newf(fault.BadInput, "read", "the input", "it has index %d, but indices should count from %d",
			l.lo, m.IndexBase)
	}
	m.Features = max(0, int(l.hi)+1-m.IndexBase)
	if m.Features == 0 && o.Features == 0 {
		return fault.Newf(fault.BadInput, "read", "the input", "no row has a feature")
	}
	if o.Features > 0 {
		if m.Features > o.Features {
			return fault.Newf(fault.BadInput, "read", "the input", "it has feature %d, more than --features %d",
				m.Features, o.Features)
		}
		m.Features = o.Features
	}
	m.Layout = SparseLayout
	if !o.Sparse && m.Features > 0 && l.nnz > l.rows*int64(m.Features)/2 {
		m.Layout = DenseLayout
	}
	return nil
}

func readMeta(dir string) (*Meta, error) {
	raw, err := os.ReadFile(filepath.Join(dir, "pack.json"))
	if err != nil {
		return nil, err
	}
	m := &Meta{}
	if err := json.Unmarshal(raw, m); err != nil {
		return nil, fault.New(fault.Corrupt, "read", dir, err)
	}
	if m.Version != packVersion {
		return nil, fault.Newf(fault.Corrupt, "read", dir, "version %d, want %d", m.Version, packVersion)
	}
	return m, nil
}

func (c *Cache) packs() []os.DirEntry {
	entries, _ := os.ReadDir(filepath.Join(c.dir, "packs"))
	kept := entries[:0]
	for _, e := range entries {
		if e.IsDir() {
			kept = append(kept, e)
		}
	}
	return kept
}

func (c *Cache) size() int64 {
	var n int64
	for _, e := range c.packs() {
		if m, err := readMeta(filepath.Join(c.dir, "packs", e.Name())); err == nil {
			n += m.Bytes()
		}
	}
	return n
}

// evict removes the packs least recently used, those in use excepted, until
// the rest fits the budget with n bytes more.
func (c *Cache) evict(more int64) {
	type aged struct {
		path  string
		bytes int64
		used  time.Time
	}
	var all []aged
	total := more
	for _, e := range c.packs() {
		path := filepath.Join(c.dir, "packs", e.Name())
		var bytes int64
		if m, err := readMeta(path); err == nil {
			bytes = m.Bytes()
		}
		total += bytes
		all = append(all, aged{path, bytes, modTime(filepath.Join(path, "pack.json"))})
	}
	sort.Slice(all, func(i, j int) bool { return all[i].used.Before(all[j].used) })
	for _, a := range all {
		if total <= c.budget {
			return
		}
		lock, err := disk.TryLock(a.path+".lock", unix.LOCK_EX)
		if lock == nil || err != nil {
			continue
		}
		os.RemoveAll(a.path)
		lock.Close()
		total -= a.bytes
	}
}

// String names the cache for messages.
func (c *Cache) String() string { return fmt.Sprintf("%s (at most %d MiB)", c.dir, c.budget>>20) }
