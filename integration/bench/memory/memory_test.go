package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	volley "github.com/volley-engine/volley"
)

// TestMain is the test, or the program that it measures.
func TestMain(m *testing.M) {
	if os.Getenv(workerEnv) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestOperationsKeepToTheirMemory, of which each once took several times its limit: the pairs
// of a key, its values, rows that are long, and what decodes files. Other tests run beside them, so that garbage is
// collected late: what is held against them is three times the limit.
func TestOperationsKeepToTheirMemory(t *testing.T) {
	limit, err := volley.ParseBytes("48MiB")
	if err != nil {
		t.Fatal(err)
	}
	long := map[string]float64{"full join of one key": 0.2, "group by one key": 0.05, "save parquet wide": 0.15,
		"read parquet lists": 0.05, "join in place few": 0.15}
	for _, op := range operations() {
		scale, asked := long[op.name]
		if !asked || testing.Short() && op.name != "full join of one key" {
			continue
		}
		t.Run(op.name, func(t *testing.T) {
			o := options{limit: "48MiB", scale: scale,
				dir: filepath.Join(t.TempDir(), strings.ReplaceAll(op.name, " ", "-"))}
			m, err := measure(o, op)
			if err != nil {
				t.Fatal(err)
			}
			if m.wrong != "" || m.peak > 3*limit {
				t.Errorf("%s: %d MiB of %d", m.verdict(limit), m.peak>>20, limit>>20)
			}
			t.Logf("%d MiB, %v", m.peak>>20, m.took)
		})
	}
}
