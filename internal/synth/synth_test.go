package synth

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestRandomIsJavas(t *testing.T) {
	if got := NewRandom(42).NextDouble(); got != 0.7275636800328681 {
		t.Errorf("nextDouble of seed 42 is %v", got)
	}
	r := NewRandom(42)
	for i, want := range []float64{1.1419053154730547, 0.9194079489827879} {
		if got := r.NextGaussian(); got != want {
			t.Errorf("gaussian %d of seed 42 is %v, want %v", i, got, want)
		}
	}
}

func TestAnyNumberOfWorkersGivesTheSameBytes(t *testing.T) {
	laws := []Law{Logistic{Rows: 20_001, Features: 5, Eps: 0.5}, NewSVM(9000, 3), NewLinear(20_000, 4, 7, 0.5, 0.1),
		NewKMeans(9000, 3, 4, 0.6),
		Ratings{Rows: 9000, Users: 200, Items: 100, Rank: 3, Noise: 0.1}, NewDocuments(9000, 300, 7, 20),
		Graph{Rows: 9000, Scale: 30}}
	for i, format := range []string{"libsvm", "csv", "arrow", "parquet", "csv", "lda-c", "txt"} {
		var first [32]byte
		for k, workers := range []int{1, 3, 8} {
			path := filepath.Join(t.TempDir(), "data")
			if err := Write(context.Background(), laws[i], format, path, workers); err != nil {
				t.Fatal(err)
			}
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if sum := sha256.Sum256(raw); k == 0 {
				first = sum
			} else if sum != first {
				t.Errorf("%s: %d workers give other bytes", format, workers)
			}
		}
	}
}

// TestTheLawsHold: what each law promises of its rows.
func TestTheLawsHold(t *testing.T) {
	svm := NewSVM(5000, 6)
	b := svm.block(0)
	wrong := 0
	for i, y := range b.labels {
		x := b.x[i*6 : i*6+6]
		for _, v := range x {
			if v < -1 || v >= 1 {
				t.Fatalf("feature %v", v)
			}
		}
		if (dot(x, svm.plane) >= 0) != (y == 1) {
			wrong++
		}
	}
	if wrong == 0 || wrong > 500 {
		t.Errorf("%d of 5000 labels are on the other side of the plane", wrong)
	}
	linear := NewLinear(3000, 5, 3, 0.5, 0.1)
	var sq float64
	for k := range linear.Blocks() {
		b := linear.block(k)
		for i, y := range b.labels {
			r := y - 0.1 - dot(linear.weights, b.x[i*5:i*5+5])
			sq += r * r / 3000
		}
	}
	if sq < 0.22 || sq > 0.28 {
		t.Errorf("the noise has variance %v, want a quarter", sq)
	}
	points := NewKMeans(3000, 4, 3, 0.6)
	var far float64
	p := points.block(0)
	for i := range p.labels {
		for j, v := range p.x[i*4 : i*4+4] {
			far += (v - points.centres[i%3][j]) * (v - points.centres[i%3][j]) / 12_000
		}
	}
	if far < 0.95 || far > 1.05 {
		t.Errorf("points have variance %v about their centres, want 1", far)
	}
}

// TestRatingsAreCellsOfALowRank: every cell once, and of equal users and items the
// products of the same vectors.
func TestRatingsAreCellsOfALowRank(t *testing.T) {
	l := Ratings{Rows: 70 * 30, Users: 70, Items: 30, Rank: 2}
	seen, var2 := map[[2]float64]float64{}, 0.0
	b := l.block(0)
	for i := range b.labels {
		x := b.x[3*i : 3*i+3]
		seen[[2]float64{x[0], x[1]}] = x[2]
		var2 += x[2] * x[2] / float64(l.Rows)
	}
	if len(seen) != 70*30 || var2 < 0.5 || var2 > 2 {
		t.Errorf("%d cells of variance %v, want 2100 of about 1", len(seen), var2)
	}
	minor := func(u, v, w, x float64) float64 {
		return seen[[2]float64{u, w}]*seen[[2]float64{v, x}] - seen[[2]float64{u, x}]*seen[[2]float64{v, w}]
	}
	// a determinant of three rows and columns vanishes
	det := seen[[2]float64{1, 1}]*minor(2, 3, 2, 3) - seen[[2]float64{1, 2}]*minor(2, 3, 1, 3) +
		seen[[2]float64{1, 3}]*minor(2, 3, 1, 2)
	if det > 1e-12 || det < -1e-12 {
		t.Errorf("the determinant of three users and items is %v", det)
	}
}

// TestDocumentsAreOfTheirTopics: a line has as many words as it says, in their order; documents have as many tokens as
// is asked for on average, and the words of a topic are all of the vocabulary's, each once.
func TestDocumentsAreOfTheirTopics(t *testing.T) {
	d := NewDocuments(2000, 210, 7, 40)
	tokens := 0
	for line := range strings.Lines(string(d.block(0).text)) {
		words := strings.Fields(line)
		if n, err := strconv.Atoi(words[0]); err != nil || n != len(words)-1 {
			t.Fatalf("%q", line)
		}
		last := -1
		for _, w := range words[1:] {
			var word, count int
			if _, err := fmt.Sscanf(w, "%d:%d", &word, &count); err != nil || word <= last || word >= 210 || count < 1 {
				t.Fatalf("%q in %q: %v", w, line, err)
			}
			last, tokens = word, tokens+count
		}
	}
	if mean := float64(tokens) / 2000; mean < 38 || mean > 42 {
		t.Errorf("%v tokens a document", mean)
	}
	for topic := range 7 {
		seen := map[int]bool{}
		for rank := range 210 {
			seen[d.word(topic, rank)] = true
		}
		if len(seen) != 210 {
			t.Errorf("topic %d has %d words", topic, len(seen))
		}
	}
}

// TestEdgesAreUnevenlyDealtOut: nodes lie below 2^scale, numbers are dealt out once each, and a few nodes have a great
// part of all edges, as often out of the first half of nodes as the law says.
func TestEdgesAreUnevenlyDealtOut(t *testing.T) {
	g := Graph{Rows: 20_000, Scale: 12}
	of, taken := map[int64]int{}, map[int64]bool{}
	for node := range int64(1 << g.Scale) {
		taken[g.number(node)] = true
	}
	if len(taken) != 1<<g.Scale {
		t.Fatalf("%d nodes have %d numbers", 1<<g.Scale, len(taken))
	}
	for b := range g.Blocks() {
		for line := range strings.Lines(string(g.block(b).text)) {
			var from, to int64
			if _, err := fmt.Sscanf(line, "%d %d\n", &from, &to); err != nil || !taken[from] || !taken[to] {
				t.Fatalf("%q: %v", line, err)
			}
			of[from]++
		}
	}
	counts := slices.Sorted(maps.Values(of))
	slices.Reverse(counts)
	sum := 0
	for _, n := range counts[:len(taken)/100] {
		sum += n
	}
	if share := float64(sum) / float64(g.Rows); share < 0.15 || share > 0.35 {
		t.Errorf("a hundredth of all nodes have %.2f of the edges", share)
	}
}
