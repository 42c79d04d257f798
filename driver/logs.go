package driver

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Logs are kept in files of this size, and the last so many of them: what one
// process prints must not fill the driver's disk.
const (
	logSegment  = 8 << 20
	logSegments = 4
)

// segment is one file of a log; its name ends in where it begins.
type segment struct {
	path  string
	first int64
}

// logFiles are the files of a log, oldest first.
func logFiles(path string) []segment {
	files, _ := os.ReadDir(filepath.Dir(path)) // none is as good as empty
	var out []segment
	for _, f := range files {
		end, ok := strings.CutPrefix(f.Name(), filepath.Base(path)+".")
		if at, err := strconv.ParseInt(end, 10, 64); ok && err == nil {
			out = append(out, segment{path + "." + end, at})
		}
	}
	slices.SortFunc(out, func(a, b segment) int { return int(min(1, max(-1, a.first-b.first))) })
	return out
}

// appendLog adds to a log, and drops its beginning where it has become too
// long. One at a time may append to a log.
func appendLog(path string, data []byte) error {
	files := logFiles(path)
	last := segment{path: path + ".0"}
	if len(files) > 0 {
		last = files[len(files)-1]
	}
	if info, err := os.Stat(last.path); err == nil && info.Size() >= logSegment {
		last.first += info.Size()
		last.path = fmt.Sprintf("%s.%d", path, last.first)
		for len(files) >= logSegments {
			os.Remove(files[0].path)
			files = files[1:]
		}
	}
	f, err := os.OpenFile(last.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Write(data)
	return err
}

// readLog hands on a log from a place on, each part with the place after it,
// and returns the place where it ends; what is no longer kept is left out.
func readLog(path string, from int64, send func(part []byte, next int64) error) (int64, error) {
	for _, s := range logFiles(path) {
		from = max(from, s.first)
		_, err := sendFrom(s.path, from-s.first, func(p []byte) error {
			from += int64(len(p))
			return send(p, from)
		})
		if err != nil {
			return from, err
		}
	}
	return from, nil
}

// lastLine is the last line of a log that begins with a prefix, which is left
// out; where none does, the last one that says something.
func lastLine(path, prefix string) string {
	files := logFiles(path)
	if len(files) == 0 {
		return ""
	}
	f, err := os.Open(files[len(files)-1].path)
	if err != nil {
		return ""
	}
	defer f.Close()
	const tail = 64 << 10
	if info, err := f.Stat(); err == nil && info.Size() > tail {
		_, _ = f.Seek(-tail, io.SeekEnd)
	}
	raw, _ := io.ReadAll(f)
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	for _, l := range slices.Backward(lines) {
		if said, ok := strings.CutPrefix(l, prefix); ok {
			return said
		}
	}
	return lines[len(lines)-1]
}

// sendFrom sends a file from an offset on and returns how much that was; a
// file that is not there is empty.
func sendFrom(path string, offset int64, send func([]byte) error) (int64, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return 0, err
	}
	var total int64
	buf := make([]byte, 256<<10)
	for {
		n, err := f.Read(buf)
		if n > 0 {
			if err := send(buf[:n]); err != nil {
				return total, err
			}
			total += int64(n)
		}
		if err != nil {
			return total, nil
		}
	}
}
