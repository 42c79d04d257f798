package host

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"io"
	"os"
	"regexp"
	"sync"

	"github.com/volley-engine/volley/internal/plan"
)

// programID identifies user code, whose functions decide the rows of packs.
func programID(cfg Config, args []byte) string {
	if cfg.Program != "" {
		return cfg.Program
	}
	return string(args) + executableDigest()
}

// executableDigest returns a digest of this program: of the identifier that go build
// has given it, of which digests of its content are a part, or, where another tool has
// given it one or none, by the digest of its file, which takes a tenth of a second.
var executableDigest = sync.OnceValue(func() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	if id := buildID(f); len(id) > 0 {
		return plan.DigestOf(id).String()
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))
})

// buildID returns the identifier that go build has given to an executable; nil where
// it has none, or one that does not depend on the content.
func buildID(r io.ReaderAt) []byte {
	f, err := elf.NewFile(r)
	if err != nil {
		return nil
	}
	note := f.Section(".note.go.buildid")
	if note == nil {
		return nil
	}
	raw, err := note.Data()
	if err != nil || !buildIDs.Match(raw) {
		return nil
	}
	return buildIDs.Find(raw)
}

// buildIDs have four digests: of what the program was made of, and how, and of its
// content. Other tools write whatever they like, the same for every program.
var buildIDs = regexp.MustCompile(`[\w-]{20}/[\w-]{20}/[\w-]{20}/[\w-]{20}`)
