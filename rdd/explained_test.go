package rdd_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
)

type wordPlan struct {
	Words rdd.Action[[]rdd.Pair[string, rdd.Joined[int64, bool]]]
}

// wordsJoined counts words, and joins the counts with a few of them.
func wordsJoined(g *rdd.Graph, path string) wordPlan {
	words := rdd.FlatMap(rdd.TextFile(g, path), strings.Fields)
	ones := rdd.Map(words, func(w string) rdd.Pair[string, int64] { return rdd.Pair[string, int64]{Key: w, Value: 1} })
	counts := rdd.ReduceByKey(ones, func(a, b int64) int64 { return a + b })
	few := rdd.Map(rdd.Parallelize(g, 1, "one", "two"), func(w string) rdd.Pair[string, bool] {
		return rdd.Pair[string, bool]{Key: w, Value: true}
	})
	return wordPlan{rdd.Collect(rdd.Join(rdd.Named(counts, "counts & more"), few))}
}

// TestAPlanIsExplained before it runs, from outside, and after it, with what shuffles have moved and which way a join
// took; as text and as a drawing that has a box for each node.
func TestAPlanIsExplained(t *testing.T) {
	path := filepath.Join(t.TempDir(), "words.txt")
	if err := os.WriteFile(path, []byte("one two three\ntwo three\nthree\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	before, err := volley.Explain(context.Background(), path, wordsJoined)
	if err != nil {
		t.Fatal(err)
	}
	if text := before.String(); !strings.Contains(text, ": 30 B\n") || strings.Contains(text, "rows") ||
		!strings.Contains(text, " or ") {
		t.Errorf("before: %s", text)
	}
	var after *rdd.Explanation
	cfg := volley.Config{Executors: 2, DataDir: t.TempDir()}
	_, err = volley.Run(context.Background(), cfg, "words", path, wordsJoined,
		func(ctx context.Context, s *rdd.Session, _ string, p wordPlan) (string, error) {
			rows, err := p.Words.Run(ctx, s)
			if err == nil && len(rows) != 2 {
				err = fmt.Errorf("%d words", len(rows))
			}
			after = s.Explained()
			return "", err
		})
	if err != nil {
		t.Fatal(err)
	}
	text := after.String()
	for _, want := range []string{"combine-by-key", "3 rows", "1 map tasks", "joined into 1", `"counts & more"`} {
		if !strings.Contains(text, want) {
			t.Errorf("after it has run %q is missing: %s", want, text)
		}
	}
	if strings.Contains(text, " or ") {
		t.Errorf("the way that the join took is not said: %s", text)
	}
	var svg bytes.Buffer
	if err := after.WriteSVG(&svg); err != nil {
		t.Fatal(err)
	}
	boxes, texts := 0, 0
	for d := xml.NewDecoder(&svg); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok {
			boxes += map[bool]int{true: 1}[e.Name.Local == "rect"]
			texts += map[bool]int{true: 1}[e.Name.Local == "text"]
		}
	}
	if boxes != len(after.Nodes)+1 || texts != len(after.Nodes) {
		t.Errorf("%d boxes and %d texts of %d nodes", boxes, texts, len(after.Nodes))
	}
	if _, err := volley.Explain(context.Background(), "/nowhere/to/be/found", wordsJoined); err == nil {
		t.Error("files that are not there are explained")
	}
}
