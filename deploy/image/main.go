package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func main() {
	root := flag.String("root", "../..", "directory of the module")
	out := flag.String("out", "../../bin/image", "directory for the image, in the OCI layout")
	push := flag.String("push", "", "REGISTRY/NAME:TAG to push it to, as the user of ~/.docker/config.json")
	architectures := flag.String("arch", "amd64,arm64", "for which processors")
	flag.Parse()
	if err := run(*root, *out, *push, strings.Split(*architectures, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// run builds the image for all architectures, keeps it, and pushes it if it is told where to.
func run(root, out, push string, architectures []string) error {
	dir, err := os.MkdirTemp("", "volley-image-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	built := map[string]string{}
	for _, arch := range architectures {
		built[arch] = filepath.Join(dir, arch)
		if err := build(root, built[arch], arch); err != nil {
			return err
		}
	}
	index, err := imageOf(built, architectures)
	if err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	if _, err := layout.Write(out, index); err != nil {
		return err
	}
	fmt.Printf("%s in %s\n", digest, out)
	if push == "" {
		return nil
	}
	to, err := name.ParseReference(push)
	if err != nil {
		return err
	}
	fmt.Println("pushing to", to)
	return remote.WriteIndex(to, index, remote.WithAuthFromKeychain(authn.DefaultKeychain))
}

// build builds the static binary.
func build(root, to, arch string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -buildid=", "-buildvcs=false", "-o", to,
		"./cmd/volley")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build for %s: %w\n%s", arch, err, out)
	}
	return nil
}
