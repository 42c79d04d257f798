package executor

import (
	"errors"
	"path/filepath"

	"github.com/volley-engine/volley/storage/pack"
	"github.com/volley-engine/volley/storage/shuffle"
)

// Store is what an executor holds of jobs' data: splits of packs, and outputs of map tasks.
type Store struct {
	Splits  *pack.Held
	Outputs *shuffle.Outputs
}

// OpenStore makes a store whose files are under dir.
func OpenStore(dir string) (*Store, error) {
	splits, err := pack.NewHeld(filepath.Join(dir, "splits"))
	if err != nil {
		return nil, err
	}
	outputs, err := shuffle.NewOutputs(filepath.Join(dir, "outputs"))
	if err != nil {
		return nil, err
	}
	return &Store{Splits: splits, Outputs: outputs}, nil
}

// Renew drops the outputs of map tasks, and keeps the splits: another process of the job counts its tasks anew.
func (s *Store) Renew() { s.Outputs.DropAll() }

// Close drops what is held, and removes its files.
func (s *Store) Close() error { return errors.Join(s.Splits.Close(), s.Outputs.Close()) }
