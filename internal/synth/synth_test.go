package synth

import (
	"context"
	"crypto/sha256"
	"os"
	"path/filepath"
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
	for _, format := range []string{"libsvm", "csv", "arrow", "parquet"} {
		var first [32]byte
		for k, workers := range []int{1, 3, 8} {
			path := filepath.Join(t.TempDir(), "data")
			if err := Write(context.Background(), Logistic{Rows: 20_001, Features: 5, Eps: 0.5}, format, path, workers); err != nil {
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
