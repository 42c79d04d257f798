package main

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// TestTheImageRuns: what is built is a valid image of the OCI layout, the same every time, and its program runs with
// nothing but what the image has, as the user that it names.
func TestTheImageRuns(t *testing.T) {
	out := filepath.Join(t.TempDir(), "image")
	again := filepath.Join(t.TempDir(), "image")
	for _, to := range []string{out, again} {
		if err := run("../..", to, "", []string{runtime.GOARCH}); err != nil {
			t.Fatal(err)
		}
	}
	first, second := indexAt(t, out), indexAt(t, again)
	a, err := first.Digest()
	b, err2 := second.Digest()
	if err = errors.Join(err, err2, validate.Index(first)); err != nil || a != b {
		t.Fatalf("%v and %v: %v", a, b, err)
	}
	image := only(t, first)
	config, err := image.ConfigFile()
	if err != nil || config.Config.User != "65532:65532" || config.Architecture != runtime.GOARCH {
		t.Fatalf("%+v, %v", config, err)
	}
	root := t.TempDir()
	unpack(t, image, root)
	if os.Geteuid() != 0 {
		t.Skip("only root may change the root of a process")
	}
	cmd := exec.Command(config.Config.Entrypoint[0], "version")
	cmd.Env, cmd.Dir = config.Config.Env, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: userID, Gid: userID}}
	text, err := cmd.CombinedOutput()
	if err != nil || !strings.HasPrefix(string(text), "volley ") {
		t.Errorf("%v: %s", err, text)
	}
}

// indexAt is the index of the image in a directory: that of the layout has it alone.
func indexAt(t *testing.T, dir string) v1.ImageIndex {
	t.Helper()
	p, err := layout.FromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	index, err := p.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	return index
}

func only(t *testing.T, index v1.ImageIndex) v1.Image {
	t.Helper()
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("%+v, %v", manifest, err)
	}
	image, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// unpack makes the files of an image.
func unpack(t *testing.T, image v1.Image, root string) {
	t.Helper()
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	raw, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	for r := tar.NewReader(raw); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		path := filepath.Join(root, h.Name)
		if err == nil && h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o755)
		} else if err == nil {
			var body []byte
			if body, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(path, body, h.FileInfo().Mode())
			}
		}
		if err == nil {
			err = errors.Join(os.Chmod(path, h.FileInfo().Mode()), os.Chown(path, h.Uid, h.Gid))
		}
		if err != nil && os.Geteuid() == 0 {
			t.Fatal(err)
		}
	}
}
