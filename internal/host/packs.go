package host

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/executor"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/pack"
)

// catalog lists the open packs, by number and by node, and the directories of those built in this
// process.
type catalog struct {
	maker    *rdd.Maker
	madeWith func(node int) []int // packs that are made at the same time
	nodes    map[int]int          // of packs, by number
	metas    map[int]*pack.Meta
	makers   map[int]plan.ExecutorID // by node
	gone     map[int]bool            // nodes whose packs have to be made again
	makings  map[int]int             // how often those of nodes were
	mu       sync.Mutex              // guards all: executors look packs up, and actions learn of what is gone
	made     map[int]*pack.Pack      // by node
}

func (j *Job) newCatalog() *catalog {
	g := j.program.Graph
	return &catalog{
		maker: &rdd.Maker{Graph: g, Cache: j.files.cache, Workers: runtime.GOMAXPROCS(0),
			Program: programID(j.cfg, j.program.Args), Progress: j.loaded},
		metas: map[int]*pack.Meta{}, makers: map[int]plan.ExecutorID{}, made: map[int]*pack.Pack{},
		gone: map[int]bool{}, makings: map[int]int{}, nodes: map[int]int{},
		madeWith: g.MadeWith,
	}
}

func (j *Job) loaded(rows int) {
	if j.cfg.Progress != nil {
		j.cfg.Progress(rdd.Progress{LoadedRows: rows})
	}
}

// opened returns the number and the description of a node's pack, and whether its rows are there; nil where it is not
// open.
func (c *catalog) opened(node int) (number int, meta *pack.Meta, there bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at, of := range c.nodes {
		if of == node {
			number = at
		}
	}
	return number, c.metas[node], !c.gone[node]
}

// make makes or finds a pack in this process.
func (c *catalog) make(ctx context.Context, node int) (*pack.Meta, error) {
	p, err := c.maker.Make(ctx, node)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.made[node] = p
	c.mu.Unlock()
	return p.Meta, nil
}

// makerBeside returns the executor that has made a pack which is made at the same time as a node's;
// empty where none has.
func (c *catalog) makerBeside(node int) (maker plan.ExecutorID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, other := range c.madeWith(node) {
		if m := c.makers[other]; m != "" {
			maker = m
		}
	}
	return maker
}

// add opens a pack under a number.
func (c *catalog) add(number, node int, maker plan.ExecutorID, meta *pack.Meta) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[number], c.metas[node], c.makers[node] = node, meta, maker
}

// remade notes that a pack is made again.
func (c *catalog) remade(node int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.gone, node)
	c.makings[node]++
}

// lost returns an error where the job's answer is that a pack has to be made again. It may be of a making before.
func (c *catalog) lost(answer driver.Command) error {
	if answer.PackGone == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	node := c.nodes[answer.PackGone.Pack]
	if answer.PackGone.Making == c.makings[node] {
		c.gone[node] = true
	}
	return fault.New(fault.LostInput, "read", fmt.Sprintf("the pack of node %d", node), rdd.ErrPackGone)
}

// Pack returns the directory of a node's pack, for the executors of this process. A task makes one of shuffled rows.
func (c *catalog) Pack(ctx context.Context, node int) (string, *pack.Meta, error) {
	c.mu.Lock()
	p := c.made[node]
	c.mu.Unlock()
	if p == nil && rdd.InTask(ctx) {
		if _, err := c.make(ctx, node); err != nil {
			return "", nil, err
		}
		return c.Pack(ctx, node)
	}
	if p == nil {
		return "", nil, fault.Newf(fault.FetchFailed, "find", fmt.Sprintf("the pack of node %d", node),
			"it has not been made")
	}
	return p.Dir, p.Meta, nil
}

// Meta describes a pack: all executors of this process share them.
func (c *catalog) Meta(ctx context.Context, _ executor.Peer, node int) (*pack.Meta, error) {
	_, meta, err := c.Pack(ctx, node)
	return meta, err
}

// infoOf returns the job machine's description of a pack.
func infoOf(node int, maker plan.ExecutorID, meta *pack.Meta) *driver.PackInfo {
	info := &driver.PackInfo{Node: node, Maker: maker}
	for _, s := range meta.Splits {
		info.Rows = append(info.Rows, s.Rows)
		if meta.Weighted {
			info.Weights = append(info.Weights, s.Weight)
		}
		if meta.Layout == pack.SparseLayout {
			info.Entries = append(info.Entries, s.Nonzeros)
		}
		info.Bytes = append(info.Bytes, s.Bytes)
		info.SHA256 = append(info.SHA256, s.SHA256)
	}
	return info
}

// hashes returns the content hashes of a pack's splits.
func hashes(meta *pack.Meta) (all []plan.Digest) {
	for _, s := range meta.Splits {
		all = append(all, s.SHA256)
	}
	return all
}

// directories are those of a job in this process, and their cleanup.
type directories struct {
	cache *pack.Cache
	dir   string // for this run
	ends  []func()
}

// open falls back to a temporary directory, with a warning, where the
// data directory cannot be used.
func (f *directories) open(cfg Config) (err error) {
	if f.cache, err = pack.OpenCache(cfg.DataDir, cfg.DiskBudget); err != nil {
		tmp, terr := os.MkdirTemp("", "volley-*")
		if terr != nil {
			return err
		}
		cfg.Logger.Warn("packs go to a temporary directory and are not kept", "reason", err)
		f.atEnd(func() { os.RemoveAll(tmp) })
		if f.cache, err = pack.OpenCache(tmp, cfg.DiskBudget); err != nil {
			return err
		}
	}
	dir, done, err := f.cache.TempDir("run")
	if err != nil {
		return err
	}
	f.dir = dir
	f.atEnd(done)
	return nil
}

func (f *directories) atEnd(do func()) { f.ends = append(f.ends, do) }

func (f *directories) close() {
	for _, do := range slices.Backward(f.ends) {
		do()
	}
}
