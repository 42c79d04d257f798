package files

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/volley-engine/volley/storage/objects"
	"github.com/volley-engine/volley/storage/objects/storetest"
)

// TestAPageWithoutADateIsAnotherEachTime: a server that says neither a tag nor a date of what it has may have other
// bytes of it the next time, so that no pack of it is used again; and it is read all the same.
func TestAPageWithoutADateIsAnotherEachTime(t *testing.T) {
	var dated atomic.Bool
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if dated.Load() {
			w.Header().Set("ETag", `"1"`)
		}
		w.Header().Set("Content-Length", "4")
		_, _ = w.Write([]byte("a,b\n"))
	}))
	defer s.Close()
	for _, same := range []bool{false, true} {
		dated.Store(same)
		first, err := Resolve(s.URL + "/page.csv")
		if err != nil {
			t.Fatal(err)
		}
		second, err := Resolve(s.URL + "/page.csv")
		if err != nil || (first[0].Tag == second[0].Tag) != same {
			t.Errorf("%+v and %+v, %v", first, second, err)
		}
		if err := first[0].Unchanged(); err != nil {
			t.Error(err)
		}
	}
}

// TestWhatABucketHolds: what a name, a pattern and a directory mean among objects.
func TestWhatABucketHolds(t *testing.T) {
	for _, root := range storetest.Roots(t) {
		for _, name := range []string{"a.csv", "d/x=1/p.csv", "d/x=2/p.csv", "d/_log/p", "d/.hidden", "d/", "dd/p.csv",
			"e/.staged", "e/part-00000"} {
			if strings.HasSuffix(name, "/") && strings.HasPrefix(root, "gs") {
				continue // the server for tests keeps no such names
			}
			if err := objects.Put(t.Context(), root+"/"+name, []byte("1\n")); err != nil {
				t.Fatal(err)
			}
		}
		for uri, want := range map[string]string{"/a.csv": "/a.csv", "/*.csv": "/a.csv",
			"/d": "/d/x=1/p.csv /d/x=2/p.csv", "/d/": "/d/x=1/p.csv /d/x=2/p.csv",
			"/d/*/p.csv": "/d/x=1/p.csv /d/x=2/p.csv"} {
			var got []string
			found, err := Resolve(root + uri)
			for _, f := range found {
				got = append(got, strings.TrimPrefix(f.Path, root))
				keyed := strings.Contains(f.Path, "=")
				if !strings.Contains(uri, "*") && keyed != (len(f.Keys) == 1) {
					t.Errorf("%s has the keys %v", f.Path, f.Keys)
				}
			}
			if err != nil || strings.Join(got, " ") != want {
				t.Errorf("%s is %q, not %q, %v", uri, got, want, err)
			}
		}
		for _, uri := range []string{"/e", "/none", "/none/*"} {
			if found, err := Resolve(root + uri); err == nil || !strings.Contains(err.Error(), root) {
				t.Errorf("%s is %v, %v", uri, found, err)
			}
		}
	}
}
