package integration

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	engine "github.com/volley-engine/volley"
	"github.com/volley-engine/volley/integration/lab"
	"github.com/volley-engine/volley/rdd"
)

var (
	pythonBlock = regexp.MustCompile("(?s)```python\n(.*?)```")
	rBlock      = regexp.MustCompile("(?s)```r\n(.*?)```")
)

// page returns docs/python.md.
func page(t *testing.T) string {
	raw, err := os.ReadFile("../docs/python.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// pythonBlocks are the programs of docs/python.md.
func pythonBlocks(t *testing.T) (out []string) {
	for _, m := range pythonBlock.FindAllStringSubmatch(page(t), -1) {
		out = append(out, m[1])
	}
	return out
}

// python runs a program in a directory, where its modules are there.
func python(t *testing.T, dir, program string, env ...string) string {
	t.Helper()
	for _, module := range []string{"pyarrow", "duckdb"} {
		if strings.Contains(program, module) && exec.Command("python3", "-c", "import "+module).Run() != nil {
			t.Skipf("python3 has no %s", module)
		}
	}
	cmd := exec.Command("python3", "-c", program)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

type visit struct {
	Country string `col:"country"`
	N       int64  `col:"n"`
}

// TestThePythonPage: each block does what docs/python.md says, where Python has its modules.
func TestThePythonPage(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3")
	}
	blocks := pythonBlocks(t)
	if len(blocks) != 5 {
		t.Fatalf("the page has %d blocks", len(blocks))
	}
	dir := t.TempDir()
	_, err := engine.Run(context.Background(), engine.Config{DataDir: t.TempDir()}, "visits", struct{}{},
		func(g *rdd.Graph, _ struct{}) rdd.Action[int64] {
			visits := rdd.Map(rdd.Range(g, 0, 40, 2),
				func(n int64) visit { return visit{[]string{"DE", "FR"}[n%2], n} })
			return rdd.SaveParquet(visits, filepath.Join(dir, "out"), rdd.PartitionedBy("country"))
		},
		func(ctx context.Context, s *rdd.Session, _ struct{}, save rdd.Action[int64]) (string, error) {
			_, err := save.Run(ctx, s)
			return "", err
		})
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"pyarrow", "duckdb"} {
		t.Run(name, func(t *testing.T) {
			if got := python(t, dir, blocks[i]); got != "40" {
				t.Errorf("it prints %q", got)
			}
		})
	}
	t.Run("model", func(t *testing.T) {
		data := filepath.Join(t.TempDir(), "train.csv")
		_, errs, code := volley(t, "generate", "logistic", "--rows", "300", "--features", "3", "--out", data)
		if code != 0 {
			t.Fatal(errs)
		}
		run(t, "--data", data, "--out", filepath.Join(dir, "model"))
		if got := python(t, dir, blocks[2]); !strings.HasPrefix(got, "{'x0': ") {
			t.Errorf("it prints %q", got)
		}
		if got := python(t, dir, blocks[3]); !strings.HasPrefix(got, "[('x") || strings.Count(got, "('x") != 3 {
			t.Errorf("DuckDB prints %q", got)
		}
	})
	t.Run("rest", func(t *testing.T) { restFromPython(t, blocks[4]) })
	t.Run("R", func(t *testing.T) {
		if exec.Command("Rscript", "-e", "library(arrow)").Run() != nil {
			t.Skip("there is no R with arrow")
		}
		for _, m := range rBlock.FindAllStringSubmatch(page(t), -1) {
			cmd := exec.Command("Rscript", "-e", m[1])
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s: %s", err, m[1], out)
			}
		}
	})
}

func restFromPython(t *testing.T, program string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	c := &cluster{lab.New(binary, t.TempDir(), "--suspicion", suspicion.String(), "--http", address), t}
	t.Cleanup(c.stop)
	c.startDriver()
	c.join("a")
	id := c.submit("--data", generated(t), "--max-iterations", "2")
	token, errs, code := volley(t, "token", "create", "--role", "read", "--driver", c.Addr)
	if code != 0 {
		t.Fatal(errs)
	}
	got := python(t, c.Dir, program, "VOLLEY_HTTP="+address, "VOLLEY_TOKEN="+strings.TrimSpace(token))
	if !strings.HasPrefix(got, id+" ") {
		t.Errorf("it prints %q, the job is %s", got, id)
	}
}
