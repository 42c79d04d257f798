package daemon

import (
	"encoding/binary"
	"errors"

	"github.com/hashicorp/raft"
)

var (
	_ raft.LogStore    = (*journalFile)(nil)
	_ raft.StableStore = (*journalFile)(nil)
)

// errNoKey is the error that raft expects where a key has no value.
var errNoKey = errors.New("not found")

// FirstIndex returns the first index of the log, 0 where it is empty.
func (j *journalFile) FirstIndex() (uint64, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	first := uint64(0)
	for i := range j.logs {
		if first == 0 || i < first {
			first = i
		}
	}
	return first, nil
}

// LastIndex returns the last index of the log, 0 where it is empty.
func (j *journalFile) LastIndex() (uint64, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	last := uint64(0)
	for i := range j.logs {
		last = max(last, i)
	}
	return last, nil
}

// GetLog fetches an entry.
func (j *journalFile) GetLog(index uint64, into *raft.Log) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	l := j.logs[index]
	if l == nil {
		return raft.ErrLogNotFound
	}
	*into = *l
	return nil
}

// StoreLog appends an entry.
func (j *journalFile) StoreLog(l *raft.Log) error { return j.StoreLogs([]*raft.Log{l}) }

// StoreLogs appends and syncs entries.
func (j *journalFile) StoreLogs(ls []*raft.Log) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	bodies := make([][]byte, len(ls))
	for i, l := range ls {
		bodies[i] = encodeLog(l)
	}
	return j.append(bodies...)
}

// DeleteRange removes entries that a snapshot covers.
func (j *journalFile) DeleteRange(first, last uint64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	body := binary.LittleEndian.AppendUint64([]byte{deleteRecord}, first)
	if err := j.append(binary.LittleEndian.AppendUint64(body, last)); err != nil || j.at < compactAt {
		return err
	}
	return j.compact()
}

// Set keeps a value under a key.
func (j *journalFile) Set(key, value []byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.append(encodeStable(string(key), value))
}

// Get returns the value of a key.
func (j *journalFile) Get(key []byte) ([]byte, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if v, ok := j.stable[string(key)]; ok {
		return v, nil
	}
	return nil, errNoKey
}

// SetUint64 sets a number.
func (j *journalFile) SetUint64(key []byte, value uint64) error {
	return j.Set(key, binary.LittleEndian.AppendUint64(nil, value))
}

// GetUint64 returns a number, 0 where there is none.
func (j *journalFile) GetUint64(key []byte) (uint64, error) {
	v, err := j.Get(key)
	if err != nil || len(v) != 8 {
		return 0, nil
	}
	return binary.LittleEndian.Uint64(v), nil
}
