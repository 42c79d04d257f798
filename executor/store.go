package executor

import (
	"errors"
	"path/filepath"

	"github.com/volley-engine/volley/storage"
)

// Store is what an executor holds of jobs' data: splits of packs, and outputs of map tasks.
type Store struct {
	Splits  *storage.Held
	Outputs *storage.Outputs
}

// OpenStore makes a store whose files are under dir.
func OpenStore(dir string) (*Store, error) {
	splits, err := storage.NewHeld(filepath.Join(dir, "splits"))
	if err != nil {
		return nil, err
	}
	outputs, err := storage.NewOutputs(filepath.Join(dir, "outputs"))
	if err != nil {
		return nil, err
	}
	return &Store{Splits: splits, Outputs: outputs}, nil
}

// Close gives up what is held, and removes its files.
func (s *Store) Close() error { return errors.Join(s.Splits.Close(), s.Outputs.Close()) }
