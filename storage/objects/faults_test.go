package objects

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/volley-engine/volley/internal/fault"
)

func init() { patience.Store(int64(2 * time.Second)) } // no store of these tests comes back

// page serves bytes, by ranges too, as a handler does that is good.
func page(raw []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(raw))
	}
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func numbers(n int) []byte {
	raw := make([]byte, n)
	for i := range raw {
		raw[i] = byte(i>>12 ^ i)
	}
	return raw
}

func readAll(name string) ([]byte, error) {
	r, err := Open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// TestAPageIsRead: of a server that sends parts, of one that does not, of one that cuts every other answer short, and
// of one that is busy now and then.
func TestAPageIsRead(t *testing.T) {
	raw := numbers(7<<20 + 3)
	var calls atomic.Int64
	servers := map[string]http.HandlerFunc{
		"by parts": page(raw),
		"whole": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(raw)))
			_, _ = w.Write(raw)
		},
		"cut": func(w http.ResponseWriter, r *http.Request) {
			if calls.Add(1)%2 == 0 {
				w.Header().Set("Content-Range", fmt.Sprintf("bytes 0-100/%d", len(raw)))
				w.Header().Set("Content-Length", "1000000")
				w.WriteHeader(http.StatusPartialContent)
				_, _ = w.Write(raw[:1000])
				return
			}
			page(raw)(w, r)
		},
		"busy": func(w http.ResponseWriter, r *http.Request) {
			if calls.Add(1)%2 == 0 {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			page(raw)(w, r)
		},
	}
	for name, h := range servers {
		got, err := readAll(serve(t, h) + "/page?key=1")
		if err != nil || !bytes.Equal(got, raw) {
			t.Errorf("%s: %d of %d bytes, %v", name, len(got), len(raw), err)
		}
	}
}

// TestWhatAPageIsNot: each error is of its kind, and says what to do.
func TestWhatAPageIsNot(t *testing.T) {
	answer := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	other := func(w http.ResponseWriter, r *http.Request) { // another part than was asked for
		if r.Header.Get("Range") == "bytes=0-0" {
			page(numbers(3<<20))(w, r)
			return
		}
		w.Header().Set("Content-Range", "bytes 0-1048575/3145728")
		w.WriteHeader(http.StatusPartialContent)
		_, _ = w.Write(make([]byte, 1<<20))
	}
	tests := []struct {
		h    http.HandlerFunc
		kind fault.Kind
		says string
	}{
		{other, fault.NoResources, "another part"},
		{answer(http.StatusNotFound), fault.BadInput, "404"},
		{answer(http.StatusForbidden), fault.BadInput, "may have expired"},
		{answer(http.StatusInternalServerError), fault.NoResources, "500"},
		{func(w http.ResponseWriter, _ *http.Request) {
			for range 10 {
				_, _ = w.Write(make([]byte, 10_000))
				w.(http.Flusher).Flush()
			}
		}, fault.BadInput, "how long"},
	}
	for _, test := range tests {
		if _, err := readAll(serve(t, test.h) + "/page?sig=secret"); fault.KindOf(err) != test.kind ||
			!strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v, want %v that says %s, and no secret", err, test.kind, test.says)
		}
	}
	name := serve(t, page([]byte("x"))) + "/page"
	if _, err := Create(t.Context(), name); !errors.Is(err, errReadOnly) {
		t.Error(err)
	}
	if err := List(t.Context(), name, func(Info) bool { return true }); fault.KindOf(err) != fault.BadInput {
		t.Error(err)
	}
	if _, err := Stat(t.Context(), serve(t, answer(http.StatusNotFound))+"/page"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestAStoreThatRefuses: keys that are wrong or have expired are no fault that another try mends, and the error says
// where they come from; a store that is busy is.
func TestAStoreThatRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		code   string
		kind   fault.Kind
		says   string
	}{
		"wrong":   {http.StatusForbidden, "InvalidAccessKeyId", fault.BadInput, "AWS_ACCESS_KEY_ID"},
		"expired": {http.StatusBadRequest, "ExpiredToken", fault.BadInput, "ExpiredToken"},
		"busy":    {http.StatusServiceUnavailable, "SlowDown", fault.NoResources, "SlowDown"},
	} {
		t.Setenv("AWS_ENDPOINT_URL", serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(test.status)
			_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>no</Message></Error>", test.code)
		}))
		t.Setenv("AWS_ACCESS_KEY_ID", "a")
		t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
		err := List(t.Context(), "s3://"+name+"/x", func(Info) bool { return true })
		if fault.KindOf(err) != test.kind || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v of the kind %v", name, err, fault.KindOf(err))
		}
	}
}

// TestWhyThereAreNoCredentials: where a store refuses, what was tried in vain is said.
func TestWhyThereAreNoCredentials(t *testing.T) {
	conf := filepath.Join(t.TempDir(), "config")
	text := "[default]\ncredential_process = sh -c 'echo token has expired >&2; exit 3'\n"
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"AWS_CONFIG_FILE": conf, "AWS_ACCESS_KEY_ID": "",
		"AWS_SECRET_ACCESS_KEY": "", "AWS_SHARED_CREDENTIALS_FILE": conf, "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_ENDPOINT_URL": serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
		})} {
		t.Setenv(name, value)
	}
	if _, err := Stat(t.Context(), "s3://nothing/x"); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Error(err)
	}
}

// google serves one object as Google Cloud Storage does: one that is marked as gzip as it is to those who take gzip,
// and unpacked, as a whole, to others. It wants a token.
func google(raw, unpacked []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer t" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("X-Goog-Generation", "7")
		if strings.HasPrefix(r.URL.Path, "/storage/v1/") {
			_, _ = fmt.Fprintf(w, `{"name": "x", "bucket": "b", "size": "%d", "generation": "7", "contentEncoding": "gzip"}`,
				len(raw))
			return
		}
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			_, _ = w.Write(unpacked)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", "text/csv")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(raw))
	}
}

// TestGoogleSendsWhatItKeeps: an object that is marked as gzip is read as it is, by ranges, with the token of a user's
// login.
func TestGoogleSendsWhatItKeeps(t *testing.T) {
	raw := numbers(3<<20 + 5)
	t.Setenv("STORAGE_EMULATOR_HOST", "")
	token := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"access_token": "t", "token_type": "Bearer", "expires_in": 3600}`))
	})
	login := filepath.Join(t.TempDir(), "adc.json")
	text := `{"type": "authorized_user", "client_id": "a", "client_secret": "b", "refresh_token": "c", "token_uri": "` +
		token + `"}`
	if err := os.WriteFile(login, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", login)
	t.Setenv("STORAGE_EMULATOR_HOST", strings.TrimPrefix(serve(t, google(raw, numbers(9<<20))), "http://"))
	got, err := readAll("gs://b/x")
	if err != nil || !bytes.Equal(got, raw) {
		t.Errorf("%d of %d bytes, %v", len(got), len(raw), err)
	}
}

// TestASlowServerIsWaitedFor: an answer may take long, while what is asked for is still sent.
func TestASlowServerIsWaitedFor(t *testing.T) {
	const step = 40 * time.Millisecond
	before := stalled.Swap(int64(4 * step))
	defer stalled.Store(before)
	ours, theirs := net.Pipe()
	defer ours.Close()
	c := patient{ours}
	go func() {
		defer theirs.Close()
		for range 12 { // three times as long as a connection may make no progress
			<-time.After(step)
			if _, err := io.ReadFull(theirs, make([]byte, 10)); err != nil {
				return
			}
		}
		_, _ = theirs.Write([]byte("done"))
	}()
	answer := make(chan error, 1)
	go func() {
		_, err := io.ReadFull(c, make([]byte, 4))
		answer <- err
	}()
	for range 12 {
		if _, err := c.Write(make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-answer; err != nil {
		t.Error(err)
	}
}

// TestAStalledServerIsGivenUp: one that takes the connection, and sends nothing more.
func TestAStalledServerIsGivenUp(t *testing.T) {
	end := make(chan struct{})
	var calls atomic.Int64
	raw := numbers(3 << 20)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) > 1 {
			<-end
		}
		page(raw)(w, r)
	})
	defer close(end)
	before := stalled.Swap(int64(50 * time.Millisecond))
	defer stalled.Store(before)
	_, err := readAll(url + "/page")
	if !fault.Policy(fault.KindOf(err)).Retry {
		t.Errorf("%v of the kind %v", err, fault.KindOf(err))
	}
}

// TestReadingEndsWithItsReader: what is on its way does not outlive it.
func TestReadingEndsWithItsReader(t *testing.T) {
	raw := numbers(30 << 20)
	began, gone := make(chan struct{}, 100), make(chan struct{}, 100)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.Header.Get("Range"), "bytes=0-") && r.Header.Get("Range") != "bytes=1048576-2097151" {
			began <- struct{}{}
			<-r.Context().Done()
			gone <- struct{}{}
			return
		}
		page(raw)(w, r)
	})
	r, err := Open(url + "/page")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(r, make([]byte, 2*blockBytes)); err != nil {
		t.Fatal(err)
	}
	for range ahead {
		<-began
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	for range ahead {
		<-gone
	}
	if _, err := r.ReadAt(make([]byte, 1), 10<<20); err == nil {
		t.Error("it is read after it was closed")
	}
}

// TestLittleIsReadBeyondTheEnd: of a part of an object little more is asked for than the part.
func TestLittleIsReadBeyondTheEnd(t *testing.T) {
	raw := numbers(64 << 20)
	var sent atomic.Int64
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		page(raw)(w, r)
		var from, to int64
		_, _ = fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &from, &to)
		sent.Add(to - from + 1)
	})
	r, err := Open(url + "/page")
	if err != nil {
		t.Fatal(err)
	}
	const from, to = 20 << 20, 30 << 20
	r.Until(to)
	got := make([]byte, to-from)
	if _, err := r.Seek(from, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(r, got); err != nil || !bytes.Equal(got, raw[from:to]) {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if n := sent.Load(); n > to-from+blockBytes {
		t.Errorf("%d bytes were asked for, the part has %d", n, to-from)
	}
}

// TestMemoryOfAReaderIsBounded: however it jumps about.
func TestMemoryOfAReaderIsBounded(t *testing.T) {
	raw := numbers(100 << 20)
	r, err := Open(serve(t, page(raw)) + "/page")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rng := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		at := rng.Int64N(int64(len(raw)))
		b := make([]byte, 1)
		if _, err := r.ReadAt(b, at); err != nil || b[0] != raw[at] {
			t.Fatal(err)
		}
		r.mu.Lock()
		kept := len(r.mu.blocks)
		r.mu.Unlock()
		if kept > blocksKept {
			t.Fatalf("%d blocks are kept", kept)
		}
	}
}

// TestOneThatStopsIsNotTriedAgain: a context that has ended ends everything.
func TestOneThatStopsIsNotTriedAgain(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	calls := 0
	err := retried(ctx, func() error { calls++; return io.ErrUnexpectedEOF })
	if err == nil || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
}

// FuzzNames: a name is taken apart or refused, and what is below it stays below it.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"s3://b/k", "gs://b", "https://h/p?q=1", "s3://", "https://u:p@h/", "s3://b//x",
		"https://h/p#f"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if !Is(name) {
			return
		}
		p, err := parse(name)
		if err != nil {
			return
		}
		if p.bucket == "" || !strings.HasPrefix(name, p.scheme+"://"+p.bucket) || !strings.HasSuffix(name, p.key) {
			t.Errorf("%q is %+v", name, p)
		}
		if below := Join(name, "a", "b"); !strings.HasSuffix(below, "/a/b") {
			t.Errorf("%q", below)
		}
	})
}
