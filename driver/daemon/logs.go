package daemon

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

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/wire"
)

// DefaultJobLog is how many bytes of a process's output are kept by default, of the end: that of one process must not
// fill the driver's disk. They are in a few files, of which the oldest goes when another is begun.
const (
	DefaultJobLog = 32 << 20
	leastJobLog   = 64 << 10
	logSegments   = 4
)

// segment is one file of a log; its name ends in its offset.
type segment struct {
	path  string
	first int64
}

// logFiles returns the files of a log, oldest first.
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
// long: most is what all of it may take. One at a time may append to a log. A sealed one is checked by checkSeals.
func appendLog(path string, data []byte, most int64, sealed bool) error {
	files := logFiles(path)
	last := segment{path: path + ".0"}
	if len(files) > 0 {
		last = files[len(files)-1]
	}
	size := int64(0)
	if info, err := os.Stat(last.path); err == nil {
		size = info.Size()
	}
	if size >= most/logSegments {
		last.first += size
		last.path, size = fmt.Sprintf("%s.%d", path, last.first), 0
		for len(files) >= logSegments {
			os.Remove(files[0].path)
			os.Remove(files[0].path + sealsSuffix)
			files = files[1:]
		}
	}
	if sealed && len(data) > 0 {
		if err := addSeal(last.path, size, data); err != nil {
			return err
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

// readLog yields a log from an offset on, each part with the offset after it,
// and returns the end's offset; what is no longer kept is left out.
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

// logEnd returns the offset at which a log ends.
func logEnd(path string) int64 {
	files := logFiles(path)
	if len(files) == 0 {
		return 0
	}
	last := files[len(files)-1]
	info, err := os.Stat(last.path)
	if err != nil {
		return last.first
	}
	return last.first + info.Size()
}

// wordsMost is how much of a log's end is searched for a process's last words.
const wordsMost = 1 << 20

// lastWords returns the reason of a process's end from its log, which begins at an offset:
// the first line of a panic, or else the last error, or else the last line. The engine's
// notices are skipped.
func lastWords(path string, from int64) (words string) {
	var raw []byte
	var last string
	_, _ = readLog(path, max(from, logEnd(path)-wordsMost), func(p []byte, _ int64) error {
		raw = append(raw, p...)
		return nil
	})
	for line := range strings.Lines(string(raw)) {
		if line = strings.TrimSpace(line); line != "" {
			last = line
		}
		for _, start := range []string{"panic: ", "fatal error: ", "runtime: out of memory"} {
			if strings.HasPrefix(line, start) {
				return line
			}
		}
		if said, ok := strings.CutPrefix(line, "volley: "); ok && !strings.HasPrefix(said, "waiting for executors") {
			words = said
		}
	}
	if words == "" {
		return last
	}
	return words
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
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

// Logs keeps a runner's output, as fast as the disk takes it.
func (d *Daemon) Logs(stream wire.Cluster_LogsServer) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	w, err := d.jobs.find(first.Job)
	if err != nil {
		return err
	}
	if !d.members.knows(first.Executor) {
		return status.Errorf(codes.NotFound, "there is no executor %q", first.Executor)
	}
	for m := first; ; {
		w.append("runner-"+first.Executor+".log", m.Data)
		w.change(func() {})
		if m, err = stream.Recv(); errors.Is(err, io.EOF) {
			return stream.SendAndClose(&wire.LogsReply{})
		}
		if err != nil {
			return err
		}
	}
}
