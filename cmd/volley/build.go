package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
)

// keptPrograms is for how long a program that is not submitted again stays built.
const keptPrograms = 30 * 24 * time.Hour

// build builds a package in its own module, and returns where the program is until done is called. One that has not
// changed since it was submitted last is there already, which go build finds out.
func build(ctx context.Context, target string) (path string, done func(), err error) {
	at, what := target, "."
	if strings.HasSuffix(target, ".go") {
		at, what = filepath.Dir(target), filepath.Base(target)
	}
	dir, done, err := placeOf(target)
	if err != nil {
		return "", nil, fault.New(fault.NoResources, "build", target, err)
	}
	path = filepath.Join(dir, "program")
	if err := begin(dir, path); err != nil {
		done()
		return "", nil, fault.New(fault.NoResources, "build", target, err)
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s", "-o", path, what)
	cmd.Dir = at // whose module decides
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		done()
		text := strings.TrimSpace(string(out))
		if text == "" {
			text = err.Error()
		}
		return "", nil, fault.Newf(fault.UserCode, "build", target, "%s", text)
	}
	if err := os.WriteFile(filepath.Join(dir, whole), nil, 0o600); err != nil {
		done()
		return "", nil, disk.WriteError("build", target, err)
	}
	return path, done, nil
}

// placeOf returns the directory in which a target is built: its own in the user's cache, or one that is gone afterwards
// where that cannot be written or another process has it.
func placeOf(target string) (dir string, done func(), err error) {
	if dir, done, ok := keptPlace(target); ok {
		return dir, done, nil
	}
	dir, err = os.MkdirTemp("", "volley-submit-*")
	return dir, func() { os.RemoveAll(dir) }, err
}

// keptPlace returns a target's own directory, which no other process has before done is called.
func keptPlace(target string) (dir string, done func(), ok bool) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", nil, false
	}
	full, err := filepath.Abs(target)
	if err != nil {
		return "", nil, false
	}
	root, name := filepath.Join(cache, "volley", "programs"), sha256.Sum256([]byte(full))
	forget(root)
	dir = filepath.Join(root, hex.EncodeToString(name[:8]))
	if os.MkdirAll(dir, 0o700) != nil {
		return "", nil, false
	}
	lock, err := disk.TryLock(filepath.Join(dir, "lock"), unix.LOCK_EX)
	if err != nil || lock == nil {
		return "", nil, false
	}
	now := time.Now()
	_ = os.Chtimes(dir, now, now) // else it is forgotten sooner
	return dir, func() { lock.Close() }, true
}

// whole is the name beside a program that was built to its end.
const whole = "whole"

// begin has go build make a program anew where the build before was cut short: it goes by what a program begins with,
// and takes a part of one for all of it.
func begin(dir, program string) error {
	mark := filepath.Join(dir, whole)
	if _, err := os.Stat(mark); err == nil {
		return os.Remove(mark)
	}
	if err := os.Remove(program); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// forget removes the programs that were not submitted for long.
func forget(root string) {
	all, _ := os.ReadDir(root)
	for _, one := range all {
		if info, err := one.Info(); err == nil && time.Since(info.ModTime()) > keptPrograms {
			_ = os.RemoveAll(filepath.Join(root, one.Name()))
		}
	}
}
