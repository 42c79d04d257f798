package trust

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
)

// privateMost bounds what is read of a private file.
const privateMost = 1 << 20

// ReadPrivate reads a file that only this user and root can read or write; another is refused.
func ReadPrivate(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil {
		return nil, fault.New(fault.Unauthorized, "read the key in", path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fault.New(fault.Unauthorized, "read the key in", path, err)
	}
	if !private(info) {
		return nil, fault.Newf(fault.Unauthorized, "read the key in", path,
			"others than this user can read or write it (mode %v)", info.Mode()).
			WithHint("who has the key can act in this user's name: chmod 600 it, or make a new one")
	}
	return io.ReadAll(io.LimitReader(f, privateMost))
}

// CheckDirectory refuses a directory of certificates that others than this user and root can write to: they could put
// their own in the place of what is there.
func CheckDirectory(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return fault.New(fault.Unauthorized, "use the certificates in", dir, err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if ok && owner.Uid != 0 && int(owner.Uid) != os.Geteuid() {
		return fault.Newf(fault.Unauthorized, "use the certificates in", dir, "it is user %d's, not user %d's",
			owner.Uid,
			os.Geteuid()).WithHint("run this as that user: sudo -u")
	}
	if !ok || info.Mode()&0o022 != 0 {
		return fault.Newf(fault.Unauthorized, "use the certificates in", dir,
			"others than this user can write to it (mode %v)", info.Mode()).WithHint("chmod 700 it")
	}
	return nil
}

// private reports whether a file is this user's alone. A secret that an orchestrator mounts is root's, and this
// user's by its group.
func private(info os.FileInfo) bool {
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() {
		return false
	}
	mounted := owner.Uid == 0 && os.Geteuid() != 0 && info.Mode()&0o037 == 0
	return mounted || int(owner.Uid) == os.Geteuid() && info.Mode()&0o077 == 0
}

// WritePrivate writes a file that only its owner can read, at once or not at all.
func WritePrivate(path string, data []byte) error {
	if err := disk.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fault.New(fault.NoResources, "write", path, err)
	}
	tmp := path + ".part"
	disk.Remove(tmp)
	if err := disk.WriteFile(tmp, data, 0o600); err != nil {
		return fault.New(fault.NoResources, "write", path, err)
	}
	return disk.Rename(tmp, path)
}
