package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	indexType = types.OCIImageIndex
	// userID is that of the user and the group volley, which no machine has otherwise.
	userID = 65532
	// home is where the daemons keep what they keep: a volume.
	home = "/var/lib/volley"
)

// imageOf returns an index of the images for some architectures, of the binaries that were built for them.
func imageOf(binaries map[string]string, architectures []string) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, indexType)
	for _, arch := range architectures {
		image, err := imageFor(arch, binaries[arch])
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}})
	}
	return index, nil
}

// imageFor returns the image for one architecture: from scratch, with one layer.
func imageFor(arch, binary string) (v1.Image, error) {
	files, err := layerOf(binary)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(files)), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if image, err = mutate.AppendLayers(image, layer); err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", arch
	config.Config = v1.Config{Entrypoint: []string{"/usr/local/bin/volley"}, User: fmt.Sprintf("%d:%d", userID, userID),
		WorkingDir: home, Env: []string{"PATH=/usr/local/bin", "HOME=" + home, "VOLLEY_HOME=" + home + "/home"},
		Volumes: map[string]struct{}{home: {}},
		Labels: map[string]string{"org.opencontainers.image.title": "volley",
			"org.opencontainers.image.description": "a dataflow engine for iterative machine learning",
			"org.opencontainers.image.licenses":    "Apache-2.0"}}
	return mutate.ConfigFile(image, config)
}

// layerOf returns the files of the image, as a tar archive whose times are all the same.
func layerOf(binary string) ([]byte, error) {
	program, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range []struct {
		path  string
		mode  int64
		owner int
		body  []byte
	}{
		{"etc/", 0o755, 0, nil},
		{"etc/passwd", 0o644, 0, fmt.Appendf(nil, "root:x:0:0:root:/root:\nvolley:x:%d:%d:volley:%s:\n", userID,
			userID, home)},
		{"etc/group", 0o644, 0, fmt.Appendf(nil, "root:x:0:\nvolley:x:%d:\n", userID)},
		{"tmp/", 0o1777, 0, nil},
		{"usr/", 0o755, 0, nil},
		{"usr/local/", 0o755, 0, nil},
		{"usr/local/bin/", 0o755, 0, nil},
		{"usr/local/bin/volley", 0o755, 0, program},
		{"var/", 0o755, 0, nil},
		{"var/lib/", 0o755, 0, nil},
		{home[1:] + "/", 0o700, userID, nil},
	} {
		h := &tar.Header{Name: f.path, Mode: f.mode, Uid: f.owner, Gid: f.owner, Size: int64(len(f.body)),
			Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if f.body == nil {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.body); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), w.Close()
}
