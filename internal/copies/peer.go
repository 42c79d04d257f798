package copies

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/wire"
)

// File is a file that others are to have, by its path under the root.
type File struct {
	Path  string
	Grows bool // it is only appended to
}

// Peer is another driver's store, with what it is known to have of one directory. One call at a time may be under way.
type Peer struct {
	client wire.FilesClient
	root   string
	dir    string
	term   uint64
	known  map[string]mark // nil: it has not been asked
}

// mark is a file of this driver's, as the other has it.
type mark struct {
	size int64
	mod  int64
	node uint64
}

// NewPeer returns the store of another driver for a directory under the root, in a term of the journal.
func NewPeer(client wire.FilesClient, root, dir string, term uint64) *Peer {
	return &Peer{client: client, root: root, dir: dir, term: term}
}

// Forget has the peer asked anew for what it has: files were changed in other ways than by growing.
func (p *Peer) Forget() { p.known = nil }

// Sync sends what the peer lacks of some files, and has it remove all others in the directory for which drop is true.
// It returns once they are on the peer's disk.
func (p *Peer) Sync(ctx context.Context, files []File, drop func(path string) bool) error {
	if p.known == nil {
		if err := p.ask(ctx, files); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &sending{p: p, ctx: ctx, after: map[string]mark{}}
	wanted := map[string]bool{}
	for _, f := range files {
		wanted[f.Path] = true
		if err := s.file(f); err != nil {
			p.known = nil
			return err
		}
	}
	for path := range p.known {
		if wanted[path] || !drop(path) {
			continue
		}
		if err := s.send(&wire.FileChange{Path: path, Remove: true}); err != nil {
			p.known = nil
			return err
		}
		delete(p.known, path)
	}
	if err := s.end(); err != nil {
		p.known = nil
		return err
	}
	for path, m := range s.after {
		p.known[path] = m
	}
	return nil
}

// ask finds out what the peer has: of a file that grows, the beginning.
func (p *Peer) ask(ctx context.Context, files []File) error {
	reply, err := p.client.Have(ctx, &wire.HaveRequest{Dir: p.dir})
	if err != nil {
		return err
	}
	grows := map[string]bool{}
	for _, f := range files {
		grows[f.Path] = f.Grows
	}
	known := map[string]mark{}
	for _, had := range reply.Files {
		path := filepath.Join(p.root, had.Path)
		known[had.Path] = mark{size: -1} // another than ours
		info, err := os.Stat(path)
		if err != nil || info.Size() < int64(had.Size) || info.Size() > int64(had.Size) && !grows[had.Path] {
			continue
		}
		sum, n, err := SumOf(path, int64(had.Size))
		if err == nil && n == int64(had.Size) && bytes.Equal(sum, had.Sha256) {
			known[had.Path] = markOf(info, n)
		}
	}
	p.known = known
	return nil
}

func markOf(info fs.FileInfo, size int64) mark {
	m := mark{size: size, mod: info.ModTime().UnixNano()}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		m.node = s.Ino
	}
	return m
}

// sending is one stream of changes, opened by the first.
type sending struct {
	p      *Peer
	ctx    context.Context
	stream wire.Files_KeepClient
	after  map[string]mark
}

// file sends what the peer lacks of a file. One that is gone meanwhile is left out.
func (s *sending) file(f File) error {
	in, err := os.Open(filepath.Join(s.p.root, f.Path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	had, known := s.p.known[f.Path]
	now := markOf(info, info.Size())
	from := int64(0)
	switch {
	case known && had == now:
		return nil
	case known && f.Grows && had.size >= 0 && had.node == now.node && had.size <= now.size:
		from = had.size
	}
	if _, err := in.Seek(from, io.SeekStart); err != nil {
		return err
	}
	first := &wire.FileChange{Path: f.Path, Begin: true, Offset: uint64(from)}
	if err := s.send(first); err != nil {
		return err
	}
	if err := parts(io.LimitReader(in, now.size-from), func(b []byte) error {
		return s.send(&wire.FileChange{Data: b})
	}); err != nil {
		return err
	}
	s.after[f.Path] = now
	return nil
}

func (s *sending) send(c *wire.FileChange) (err error) {
	if s.stream == nil {
		if s.stream, err = s.p.client.Keep(s.ctx); err != nil {
			return err
		}
	}
	c.Term = s.p.term
	if err = s.stream.Send(c); errors.Is(err, io.EOF) { // the reply says why
		_, err = s.stream.CloseAndRecv()
	}
	return err
}

func (s *sending) end() error {
	if s.stream == nil {
		return nil
	}
	_, err := s.stream.CloseAndRecv()
	return err
}

// Bring brings a file of another store's to a place under the root, whole or not at all.
func Bring(ctx context.Context, client wire.FilesClient, root, path string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := client.Bring(ctx, &wire.BringRequest{Path: path})
	if err != nil {
		return err
	}
	to := filepath.Join(root, path)
	if err := disk.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	f, err := disk.CreateTemp(filepath.Dir(to), ".arriving-*")
	if err != nil {
		return err
	}
	defer disk.Remove(f.Name())
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			_, err = f.Write(part.Data)
		}
		if err != nil {
			return errors.Join(err, f.Close())
		}
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := disk.Rename(f.Name(), to); err != nil {
		return err
	}
	return disk.SyncDir(filepath.Dir(to))
}
