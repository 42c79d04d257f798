package copies

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/wire"
)

// Store serves the files under a directory to other drivers.
type Store struct {
	wire.UnimplementedFilesServer
	Root string
	// Within are the directories under Root that are served.
	Within []string
	// Skip are names of directories that are not shared.
	Skip []string
	// Takes reports whether changes are taken of a driver that led in a term.
	Takes func(term uint64) bool
}

// path returns where a file is; a path that leads elsewhere is refused.
func (s *Store) path(rel string) (string, error) {
	first, _, _ := strings.Cut(rel, "/")
	for _, dir := range s.Within {
		if first == dir && filepath.IsLocal(rel) && filepath.Clean(rel) == rel {
			return filepath.Join(s.Root, rel), nil
		}
	}
	return "", status.Errorf(codes.PermissionDenied, "%q is no file that drivers share", rel)
}

// Have lists the files in a directory, and in those under it.
func (s *Store) Have(_ context.Context, req *wire.HaveRequest) (*wire.HaveReply, error) {
	dir, err := s.path(req.Dir)
	if err != nil {
		return nil, err
	}
	reply := &wire.HaveReply{}
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // or it was removed meanwhile
		}
		if err == nil && e.IsDir() && slices.Contains(s.Skip, e.Name()) {
			return filepath.SkipDir
		}
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		had, err := s.had(path, req.Brief)
		if err == nil {
			reply.Files = append(reply.Files, had)
		}
		return err
	})
	return reply, err
}

// had describes a file.
func (s *Store) had(path string, brief bool) (*wire.HadFile, error) {
	rel, err := filepath.Rel(s.Root, path)
	if err != nil {
		return nil, err
	}
	if brief {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		return &wire.HadFile{Path: rel, Size: uint64(info.Size())}, nil
	}
	sum, size, err := SumOf(path, -1)
	return &wire.HadFile{Path: rel, Size: uint64(size), Sha256: sum}, err
}

// SumOf returns the SHA-256 of a file, or of its first bytes where most is not negative, and how many these were.
func SumOf(path string, most int64) (sum []byte, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	h := sha256.New()
	var r io.Reader = f
	if most >= 0 {
		r = io.LimitReader(f, most)
	}
	size, err = io.Copy(h, r)
	return h.Sum(nil), size, err
}

// Keep takes changes of files in.
func (s *Store) Keep(stream wire.Files_KeepServer) error {
	k := &keeping{s: s, dirs: map[string]bool{}}
	defer k.close()
	for {
		c, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if !s.Takes(c.Term) {
			return status.Errorf(codes.FailedPrecondition, "the caller led in term %d, and another driver does since",
				c.Term)
		}
		if err := k.take(c); err != nil {
			return status.Error(codes.ResourceExhausted, err.Error())
		}
	}
	if err := k.finish(); err != nil {
		return status.Error(codes.ResourceExhausted, err.Error())
	}
	return stream.SendAndClose(&wire.KeepReply{})
}

// keeping is one stream of changes.
type keeping struct {
	s    *Store
	f    *disk.File
	dirs map[string]bool // to be synced
}

func (k *keeping) take(c *wire.FileChange) error {
	if c.Begin || c.Remove {
		if err := k.close(); err != nil {
			return err
		}
		path, err := k.s.path(c.Path)
		if err != nil {
			return err
		}
		k.dirs[filepath.Dir(path)] = true
		if c.Remove {
			if err := disk.Remove(path); !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		}
		if err := k.open(path, int64(c.Offset)); err != nil {
			return err
		}
	}
	if k.f == nil {
		return errors.New("data of no file")
	}
	_, err := k.f.Write(c.Data)
	return err
}

func (k *keeping) open(path string, at int64) (err error) {
	if err := disk.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if k.f, err = disk.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	if end, err := k.f.Seek(0, io.SeekEnd); err != nil || end < at {
		return errors.Join(err, errors.New("the copy of "+filepath.Base(path)+" ends before the change"))
	}
	if err := k.f.Truncate(at); err != nil {
		return err
	}
	_, err = k.f.Seek(at, io.SeekStart)
	return err
}

// close ends a file: it is on the disk then.
func (k *keeping) close() error {
	if k.f == nil {
		return nil
	}
	f := k.f
	k.f = nil
	return errors.Join(f.Sync(), f.Close())
}

// finish puts the names of the files on the disk, too.
func (k *keeping) finish() error {
	if err := k.close(); err != nil {
		return err
	}
	for dir := range k.dirs {
		if err := disk.SyncDir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Bring sends a file.
func (s *Store) Bring(req *wire.BringRequest, stream wire.Files_BringServer) error {
	path, err := s.path(req.Path)
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return status.Error(codes.NotFound, "it is not here: "+req.Path)
	}
	defer f.Close()
	return parts(f, func(p []byte) error { return stream.Send(&wire.FilePart{Data: p}) })
}

// partSize is how much of a file is sent at once.
const partSize = 256 << 10

// parts hands a reader's bytes on.
func parts(r io.Reader, send func([]byte) error) error {
	buf := make([]byte, partSize)
	for {
		n, err := io.ReadFull(r, buf)
		if n > 0 {
			if err := send(buf[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
	}
}
