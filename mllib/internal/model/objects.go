package model

import (
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

// readNumbers returns the bytes of a model's numbers, wherever it is.
func readNumbers(dir string) ([]byte, error) {
	raw, err := files.ReadFile(files.Join(dir, numbersFile))
	if !errors.Is(err, fs.ErrNotExist) {
		return raw, err
	}
	head, herr := files.ReadFile(files.Join(dir, headFile))
	if herr != nil {
		return nil, herr
	}
	var said struct {
		Weights string `json:"weights_sha256"`
	}
	if json.Unmarshal(head, &said) != nil || said.Weights == "" {
		return nil, err
	}
	return files.ReadFile(files.Join(dir, storedNumbers(said.Weights)))
}

// PlaceObjects writes what a job has made below the name of a store, by names: model.json last, if there is one.
func PlaceObjects(dir string, overwrite bool, made map[string][]byte) error {
	if err := CanSave(dir, overwrite); err != nil {
		return err
	}
	made = maps.Clone(made)
	if raw, ok := made[numbersFile]; ok {
		delete(made, numbersFile)
		made[storedNumbers(digestOf(raw))] = raw
	}
	ctx := context.Background()
	for _, name := range slices.Sorted(maps.Keys(made)) {
		if name == headFile {
			continue
		}
		if err := objects.Put(ctx, objects.Join(dir, name), made[name]); err != nil {
			return err
		}
	}
	if head, ok := made[headFile]; ok {
		if err := putHead(ctx, dir, overwrite, head); err != nil {
			return err
		}
	}
	return dropNumbers(ctx, dir, made)
}

// putHead writes model.json, which makes the model; without overwrite only where there is none.
func putHead(ctx context.Context, dir string, overwrite bool, head []byte) error {
	put := objects.PutNew
	if overwrite {
		put = objects.Put
	}
	err := put(ctx, objects.Join(dir, headFile), head)
	if errors.Is(err, fs.ErrExist) {
		return existsAlready(dir)
	}
	return err
}

// dropNumbers removes the numbers of models that were there before.
func dropNumbers(ctx context.Context, dir string, made map[string][]byte) error {
	names, err := objectsIn(dir)
	for _, name := range names {
		if _, ours := made[name]; err == nil && !ours && isStoredNumbers(name) {
			err = objects.Remove(ctx, objects.Join(dir, name))
		}
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
		case name != headFile && !isStoredNumbers(name):
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
