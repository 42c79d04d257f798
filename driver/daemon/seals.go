package daemon

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/cespare/xxhash/v2"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
)

// What runners print is on one driver's disk alone. Each part that is added to a file of it gets a seal, in a file
// beside it, before the part is written: so that a reader notices what is damaged or cut off.

// sealsSuffix is what the name of a file of seals ends in.
const sealsSuffix = ".seals"

// seal is where a part of a file is, and a hash of its bytes. One that begins where the seal before it does takes the
// place of that: the driver was killed before it had written all of that part.
type seal struct{ from, to, hash uint64 }

// sealBytes is the size of a seal in a file: three numbers, and a hash of them.
const sealBytes = 32

func (s seal) encode() []byte {
	raw := make([]byte, 0, sealBytes)
	for _, v := range []uint64{s.from, s.to, s.hash} {
		raw = binary.LittleEndian.AppendUint64(raw, v)
	}
	return binary.LittleEndian.AppendUint64(raw, xxhash.Sum64(raw))
}

var errSeals = errors.New("the digests beside it are damaged")

func decodeSeal(raw []byte) (s seal, err error) {
	if len(raw) != sealBytes || xxhash.Sum64(raw[:24]) != binary.LittleEndian.Uint64(raw[24:]) {
		return s, errSeals
	}
	v := func(at int) uint64 { return binary.LittleEndian.Uint64(raw[at:]) }
	return seal{v(0), v(8), v(16)}, nil
}

// addSeal seals what is about to be written to a file from an offset on.
func addSeal(path string, from int64, data []byte) error {
	f, err := os.OpenFile(path+sealsSuffix, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	raw, err := adopted(f, path, from)
	if err != nil {
		return err
	}
	_, err = f.Write(append(raw, seal{uint64(from), uint64(from) + uint64(len(data)), xxhash.Sum64(data)}.encode()...))
	return err
}

// adopted returns the seal of what there is of a part that was not written to its end; nothing where all was.
func adopted(f *os.File, path string, size int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil || info.Size() < sealBytes {
		return nil, err
	}
	raw := make([]byte, sealBytes)
	if _, err := f.ReadAt(raw, info.Size()-sealBytes); err != nil {
		return nil, err
	}
	last, err := decodeSeal(raw)
	if err != nil || int64(last.to) <= size || int64(last.from) > size {
		return nil, nil // the reader finds out
	}
	part := make([]byte, size-int64(last.from))
	data, err := os.Open(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err == nil {
		defer data.Close()
		if _, err := data.ReadAt(part, int64(last.from)); err != nil && err != io.EOF {
			return nil, err
		}
	}
	return seal{last.from, uint64(size), xxhash.Sum64(part)}.encode(), nil
}

// checkSeals compares the files of a log with their seals. Those of an earlier version have none.
func checkSeals(path string) error {
	for _, s := range logFiles(path) {
		raw, err := os.ReadFile(s.path + sealsSuffix)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = checkFile(s.path, raw)
		}
		if err != nil {
			return fault.New(fault.Corrupt, "read", s.path, err).
				WithHint("it is not what the executor has printed; what is left of it can be read as a file")
		}
	}
	return nil
}

// checkFile compares a file with its seals.
func checkFile(path string, seals []byte) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return disk.OpenError(path, err)
	}
	all, err := sealsOf(seals)
	if err != nil {
		return err
	}
	at := uint64(0)
	for _, s := range all {
		switch {
		case s.from != at || s.to < s.from:
			return errSeals
		case s.to > uint64(len(data)):
			return errors.New("it is cut off")
		case xxhash.Sum64(data[s.from:s.to]) != s.hash:
			return errors.New("it is damaged")
		}
		at = s.to
	}
	if at != uint64(len(data)) {
		return errSeals
	}
	return nil
}

// sealsOf returns the seals that count.
func sealsOf(raw []byte) (all []seal, err error) {
	for at := 0; at < len(raw); at += sealBytes {
		s, err := decodeSeal(raw[at:min(len(raw), at+sealBytes)])
		if err != nil {
			return nil, err
		}
		if n := len(all); n > 0 && all[n-1].from == s.from {
			all = all[:n-1]
		}
		all = append(all, s)
	}
	return all, nil
}
