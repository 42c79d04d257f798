package daemon

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/hashicorp/raft"
	"golang.org/x/sys/unix"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
)

// journalFile stores a journal: one append-only file of records, each with a checksum over
// itself and all before it, so that any change, omission or reordering is detected. A file
// beside it has the length that was last known to be on the disk, so that a truncation is
// distinguished from an end that was never written. It implements raft.LogStore and
// raft.StableStore.
type journalFile struct {
	mu     sync.Mutex
	dir    string
	f      *disk.File
	length *disk.File
	lock   *os.File
	at     int64
	sum    uint64 // of all records so far
	logs   map[uint64]*raft.Log
	stable map[string][]byte
	broken error // the state of the disk is not known: nothing more is appended
}

const (
	journalName = "journal.log"
	lengthName  = "journal.length"
	journalHead = "volley journal 2\n"
	recordHead  = 12       // bytes before a record's body: its length, and its checksum
	recordEnd   = '\n'     // after it: a truncated or unwritten record has none
	recordMost  = 64 << 20 // bytes of a body
	compactAt   = 16 << 20 // bytes from which a file is worth rewriting
)

// Kinds of record.
const (
	logRecord    = 'L'
	deleteRecord = 'D'
	stableRecord = 'S'
)

// openJournalFile opens a directory's journal, or makes one.
func openJournalFile(dir string) (*journalFile, error) {
	if _, err := os.Stat(filepath.Join(dir, "raft.db")); err == nil {
		return nil, fault.Newf(fault.BadInput, "open the journal in", dir,
			"raft.db is of version 1, this driver reads version 2").
			WithHint("let its jobs end under the driver that wrote it, then begin with another data directory")
	}
	j := &journalFile{dir: dir, logs: map[uint64]*raft.Log{}, stable: map[string][]byte{}}
	if err := j.open(); err != nil {
		j.Close()
		return nil, err
	}
	return j, nil
}

func (j *journalFile) open() (err error) {
	if j.lock, err = os.OpenFile(j.dir, os.O_RDONLY, 0); err != nil {
		return err
	}
	if err := unix.Flock(int(j.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return errors.New("another driver uses it")
	}
	path := filepath.Join(j.dir, journalName)
	raw, err := os.ReadFile(path)
	durable := j.durable()
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(raw) <= len(journalHead) && durable == 0 {
		return j.create(path)
	}
	if err != nil {
		return err
	}
	if err := j.read(path, raw, durable); err != nil {
		return err
	}
	if j.unfounded() {
		return j.beginAnew(path)
	}
	if j.f, err = disk.OpenFile(path, os.O_RDWR, 0); err != nil {
		return err
	}
	if err := j.f.Truncate(j.at); err != nil { // what was being written when the power failed
		return err
	}
	if _, err := j.f.Seek(j.at, 0); err != nil {
		return err
	}
	return j.openLength()
}

// unfounded reports whether the power failed before the journal had its first entry, the
// raft configuration: nothing else can be in it.
func (j *journalFile) unfounded() bool {
	snapshots, err := os.ReadDir(filepath.Join(j.dir, "snapshots"))
	return err == nil && len(j.logs) == 0 && len(snapshots) == 0
}

func (j *journalFile) beginAnew(path string) error {
	err := disk.Remove(filepath.Join(j.dir, lengthName))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = disk.SyncDir(j.dir)
	}
	if err != nil {
		return err
	}
	j.sum, j.stable = 0, map[string][]byte{}
	return j.create(path)
}

// create begins a journal.
func (j *journalFile) create(path string) (err error) {
	if j.durable() > 0 {
		return fault.Newf(fault.Corrupt, "open", path, "it is gone, and %s says that it had %d bytes", lengthName,
			j.durable())
	}
	if j.f, err = disk.Create(path); err != nil {
		return err
	}
	if _, err = j.f.Write([]byte(journalHead)); err == nil {
		err = j.f.Sync()
	}
	if err == nil {
		err = disk.SyncDir(j.dir)
	}
	if j.at = int64(len(journalHead)); err == nil {
		err = j.openLength()
	}
	return err
}

func (j *journalFile) openLength() (err error) {
	j.length, err = disk.OpenFile(filepath.Join(j.dir, lengthName), os.O_RDWR|os.O_CREATE, 0o600)
	return err
}

// durable returns the length of the journal that is known to be on the disk; 0 where it is not recorded.
func (j *journalFile) durable() int64 {
	raw, err := os.ReadFile(filepath.Join(j.dir, lengthName))
	if err != nil || len(raw) != 16 || xxhash.Sum64(raw[:8]) != binary.LittleEndian.Uint64(raw[8:]) {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(raw))
}

// read reads all records.
func (j *journalFile) read(path string, raw []byte, durable int64) error {
	if !bytes.HasPrefix(raw, []byte(journalHead)) {
		return fault.Newf(fault.Corrupt, "read", path, "it does not begin as a journal")
	}
	j.at = int64(len(journalHead))
	for rest := raw[j.at:]; len(rest) > 0; rest = raw[j.at:] {
		body, whole := j.next(rest)
		if !whole && j.at >= durable && torn(rest) {
			return nil
		}
		if !whole || !j.apply(body) {
			return fault.Newf(fault.Corrupt, "read", path, "the record at byte %d is not what was written", j.at).
				WithHint("the disk has damaged it: restore the data directory, or begin with another one")
		}
		j.at += int64(recordHead + len(body) + 1)
	}
	if j.at < durable {
		return fault.Newf(fault.Corrupt, "read", path, "it ends at byte %d, and had %d", j.at, durable).
			WithHint("its end was cut off: restore the data directory, or begin with another one")
	}
	return nil
}

// torn reports whether the bytes at a journal's end may be a torn write of a power
// failure: less than a record, or one without its end.
func torn(rest []byte) bool {
	if len(rest) < recordHead || rest[len(rest)-1] == 0 {
		return true
	}
	n := int64(binary.LittleEndian.Uint32(rest))
	return int64(len(rest)) < recordHead+n+1
}

// next returns the body of the first record, if it is whole.
func (j *journalFile) next(rest []byte) (body []byte, whole bool) {
	if len(rest) < recordHead {
		return nil, false
	}
	n := int64(binary.LittleEndian.Uint32(rest))
	if n > recordMost || int64(len(rest)) < recordHead+n+1 || rest[recordHead+n] != recordEnd {
		return nil, false
	}
	body = rest[recordHead : recordHead+n]
	sum := chain(j.sum, body)
	if sum != binary.LittleEndian.Uint64(rest[4:]) {
		return nil, false
	}
	j.sum = sum
	return body, true
}

// chain returns the checksum of a record after all those before it.
func chain(before uint64, body []byte) uint64 {
	head := binary.LittleEndian.AppendUint64(nil, before)
	return xxhash.Sum64(append(binary.LittleEndian.AppendUint32(head, uint32(len(body))), body...))
}

// appendRecord appends a record as it is in the file, and returns the checksum of all so far.
func appendRecord(out []byte, before uint64, body []byte) ([]byte, uint64) {
	sum := chain(before, body)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(body)))
	return append(append(binary.LittleEndian.AppendUint64(out, sum), body...), recordEnd), sum
}

// apply applies one record.
func (j *journalFile) apply(body []byte) bool {
	if len(body) == 0 {
		return false
	}
	switch kind, b := body[0], body[1:]; kind {
	case logRecord:
		l, ok := decodeLog(b)
		if ok {
			j.logs[l.Index] = l
		}
		return ok
	case deleteRecord:
		if len(b) != 16 {
			return false
		}
		for i := binary.LittleEndian.Uint64(b); i <= binary.LittleEndian.Uint64(b[8:]); i++ {
			delete(j.logs, i)
		}
		return true
	case stableRecord:
		n, k := binary.Uvarint(b)
		if k <= 0 || n > uint64(len(b)-k) {
			return false
		}
		j.stable[string(b[k:k+int(n)])] = slices.Clone(b[k+int(n):])
		return true
	}
	return false
}

func encodeLog(l *raft.Log) []byte {
	out := []byte{logRecord}
	for _, v := range []uint64{l.Index, l.Term, uint64(l.Type), uint64(l.AppendedAt.UnixNano()),
		uint64(len(l.Extensions))} {
		out = binary.LittleEndian.AppendUint64(out, v)
	}
	return append(append(out, l.Extensions...), l.Data...)
}

func decodeLog(b []byte) (*raft.Log, bool) {
	if len(b) < 40 {
		return nil, false
	}
	v := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	n := v(4)
	if n > uint64(len(b)-40) {
		return nil, false
	}
	l := &raft.Log{Index: v(0), Term: v(1), Type: raft.LogType(v(2)), Data: slices.Clone(b[40+n:])}
	if n > 0 {
		l.Extensions = slices.Clone(b[40 : 40+n])
	}
	return l, true
}

// append writes and syncs records.
func (j *journalFile) append(bodies ...[]byte) error {
	if j.broken != nil {
		return j.broken
	}
	var out []byte
	sum := j.sum
	for _, body := range bodies {
		if len(body) > recordMost {
			return fmt.Errorf("a record of %d bytes is larger than %d", len(body), recordMost)
		}
		out, sum = appendRecord(out, sum, body)
	}
	_, err := j.f.Write(out)
	if err == nil {
		err = j.f.Sync()
	}
	if err != nil {
		if j.broken = j.undo(); j.broken != nil {
			j.broken = fault.New(fault.NoResources, "write", filepath.Join(j.dir, journalName),
				j.broken).WithHint("restart the driver once the disk works")
		}
		return errors.Join(err, j.broken)
	}
	j.at, j.sum = j.at+int64(len(out)), sum
	for _, body := range bodies {
		j.apply(body)
	}
	_ = j.noteLength() // the records are on the disk, whether or not the length is noted
	return nil
}

// undo truncates records that did not all reach the disk.
func (j *journalFile) undo() error {
	if err := j.f.Truncate(j.at); err != nil {
		return err
	}
	_, err := j.f.Seek(j.at, 0)
	return err
}

// noteLength records the journal's length, without a sync.
func (j *journalFile) noteLength() error {
	raw := binary.LittleEndian.AppendUint64(nil, uint64(j.at))
	raw = binary.LittleEndian.AppendUint64(raw, xxhash.Sum64(raw))
	if _, err := j.length.Seek(0, 0); err != nil {
		return err
	}
	_, err := j.length.Write(raw)
	return err
}

// compact writes the remaining records into a new file that replaces the old one.
func (j *journalFile) compact() error {
	path := filepath.Join(j.dir, journalName)
	var bodies [][]byte
	for key, value := range j.stable {
		bodies = append(bodies, encodeStable(key, value))
	}
	for _, i := range j.indexes() {
		bodies = append(bodies, encodeLog(j.logs[i]))
	}
	slices.SortFunc(bodies, bytes.Compare)
	out, sum := []byte(journalHead), uint64(0)
	for _, body := range bodies {
		out, sum = appendRecord(out, sum, body)
	}
	if err := disk.WriteSynced(path+".part", out, 0o600); err != nil {
		return err
	}
	f, err := disk.OpenFile(path+".part", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if _, err = f.Seek(int64(len(out)), 0); err == nil {
		err = disk.Remove(filepath.Join(j.dir, lengthName)) // it is of the old file
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err == nil {
		err = disk.SyncDir(j.dir)
	}
	if err == nil {
		err = disk.Rename(path+".part", path)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	_, _ = j.f.Close(), j.length.Close() // of files that have been unlinked
	j.f, j.at, j.sum = f, int64(len(out)), sum
	if err = disk.SyncDir(j.dir); err == nil {
		err = j.openLength()
	}
	if err != nil {
		j.broken = fault.New(fault.NoResources, "write anew", path,
			err).WithHint("restart the driver once the disk works")
		return j.broken
	}
	return j.noteLength()
}

func encodeStable(key string, value []byte) []byte {
	out := binary.AppendUvarint([]byte{stableRecord}, uint64(len(key)))
	return append(append(out, key...), value...)
}

// indexes returns the indexes of the log's entries, ascending.
func (j *journalFile) indexes() []uint64 {
	out := make([]uint64, 0, len(j.logs))
	for i := range j.logs {
		out = append(out, i)
	}
	slices.Sort(out)
	return out
}

// Close closes the files.
func (j *journalFile) Close() (err error) {
	if j.f != nil {
		err = j.f.Close()
	}
	if j.length != nil {
		err = errors.Join(err, j.length.Close())
	}
	if j.lock != nil {
		err = errors.Join(err, j.lock.Close())
	}
	return err
}
