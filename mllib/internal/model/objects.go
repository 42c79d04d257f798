package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/storage/input/files"
	"github.com/volley-engine/volley/storage/objects"
)

// Files of a model's directory. In a store the numbers have their digest in their name: model.json, which is written
// last, at once, says which they are, so that a reader finds the old model or the new one.
const (
	headFile    = "model.json"
	numbersFile = "weights.arrow"
)

// storedNumbers returns the name of a model's numbers in a store.
func storedNumbers(digest string) string {
	return "weights-" + digest[:min(len(digest), 16)] + ".arrow"
}

func isStoredNumbers(name string) bool {
	return strings.HasPrefix(name, "weights-") && strings.HasSuffix(name, ".arrow")
}

// readNumbers returns the bytes of a model's numbers, wherever it is, by the digest that model.json has of them. A
// model that was copied from a directory into a store has them under their name there.
func readNumbers(dir, digest string) ([]byte, error) {
	if objects.Is(dir) && digest != "" {
		raw, err := files.ReadFile(files.Join(dir, storedNumbers(digest)))
		if !errors.Is(err, fs.ErrNotExist) {
			return raw, err
		}
	}
	return files.ReadFile(files.Join(dir, numbersFile))
}

// numbersOf returns the name of the numbers that a model.json has, among the names in its place.
func numbersOf(head []byte, names []string) string {
	var said struct {
		Weights string `json:"weights_sha256"`
	}
	if json.Unmarshal(head, &said) != nil || said.Weights == "" {
		return ""
	}
	if name := storedNumbers(said.Weights); slices.Contains(names, name) {
		return name
	}
	return numbersFile
}

// PlaceObjects writes what a job has made below the name of a store, by names: model.json last, if there is one.
func PlaceObjects(dir string, overwrite bool, made map[string][]byte) error {
	if err := CanSave(dir, overwrite); err != nil {
		return err
	}
	s := newStoredModel(dir, made)
	for _, step := range []func() error{s.look, s.putNumbers, func() error { return s.putHead(overwrite) }, s.settle} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// storedModel is a model, or what else a job has made, that is being saved to a store.
type storedModel struct {
	dir    string
	made   map[string][]byte
	before string // the name of the numbers of the model that is there; empty where there is none
}

func newStoredModel(dir string, made map[string][]byte) *storedModel {
	made = maps.Clone(made)
	if raw, ok := made[numbersFile]; ok {
		delete(made, numbersFile)
		made[storedNumbers(digestOf(raw))] = raw
	}
	return &storedModel{dir: dir, made: made}
}

// headMost bounds what a model.json has.
const headMost = 64 << 20

// look notes what is replaced.
func (s *storedModel) look() error {
	head, err := objects.Get(context.Background(), objects.Join(s.dir, headFile), headMost)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	names, err := objectsIn(s.dir)
	s.before = numbersOf(head, names)
	return err
}

// putNumbers writes all but model.json.
func (s *storedModel) putNumbers() error {
	for _, name := range slices.Sorted(maps.Keys(s.made)) {
		if name == headFile {
			continue
		}
		if err := objects.Put(context.Background(), objects.Join(s.dir, name), s.made[name]); err != nil {
			return err
		}
	}
	return nil
}

// settle ends a save whose model.json is written. Another one, which had the same numbers to replace, may have removed
// them; and those that it has replaced are removed, unless it is replaced itself by now.
func (s *storedModel) settle() error {
	ctx := context.Background()
	for name, raw := range s.made {
		if _, err := objects.Stat(ctx, objects.Join(s.dir, name)); errors.Is(err, fs.ErrNotExist) && name != headFile {
			if err := objects.Put(ctx, objects.Join(s.dir, name), raw); err != nil {
				return err
			}
		}
	}
	head, model := s.made[headFile]
	if _, ours := s.made[s.before]; ours || s.before == "" || !model {
		return nil
	}
	now, err := objects.Get(ctx, objects.Join(s.dir, headFile), headMost)
	if err != nil || !bytes.Equal(now, head) {
		return err
	}
	return objects.Remove(ctx, objects.Join(s.dir, s.before))
}

// putHead writes model.json, which makes the model; without overwrite only where there is none.
func (s *storedModel) putHead(overwrite bool) error {
	head, ok := s.made[headFile]
	if !ok {
		return nil
	}
	put := objects.PutNew
	if overwrite {
		put = objects.Put
	}
	err := put(context.Background(), objects.Join(s.dir, headFile), head)
	if errors.Is(err, fs.ErrExist) {
		return existsAlready(s.dir)
	}
	return err
}

// objectsIn returns the names of the objects below a name.
func objectsIn(dir string) (names []string, err error) {
	err = objects.List(context.Background(), objects.Join(dir)+"/", func(i objects.Info) bool {
		if !strings.HasSuffix(i.Name, "/") { // some programs write directories
			names = append(names, strings.TrimPrefix(i.Name, objects.Join(dir)+"/"))
		}
		return true
	})
	return names, err
}

// canSaveObjects does what CanSave does, in a store.
func canSaveObjects(dir string, overwrite bool) error {
	if err := objects.CanWrite(dir); err != nil {
		return err
	}
	names, err := objectsIn(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		switch {
		case name == headFile && !overwrite:
			return existsAlready(dir)
		case name != headFile && name != numbersFile && !isStoredNumbers(name):
			return notAModel(dir, errors.New("it holds "+name))
		}
	}
	return nil
}

func existsAlready(dir string) error {
	return fault.Newf(fault.Usage, "save the model to", dir, "it exists already").
		WithHint("add --overwrite, or choose another directory")
}

func notAModel(dir string, why error) error {
	return fault.Newf(fault.Usage, "save the model to", dir, "it is not a model's directory: %w", why).
		WithHint("choose another --out")
}
