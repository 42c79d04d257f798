package lint

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	module   = "github.com/volley-engine/volley"
	maxFile  = 600
	maxFunc  = 80
	rootPath = "../.."
)

// source is one parsed Go file.
type source struct {
	path string // from the root
	dir  string
	raw  []byte
	file *ast.File
	fset *token.FileSet
	test bool
	gen  bool
}

func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	err := filepath.WalkDir(rootPath, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(rootPath, path)
		if d.IsDir() {
			if strings.HasPrefix(d.Name(), ".") && rel != "." || d.Name() == "testdata" || d.Name() == "bin" {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		s := source{path: rel, dir: filepath.Dir(rel), raw: raw, fset: token.NewFileSet(),
			test: strings.HasSuffix(path, "_test.go")}
		if s.file, err = parser.ParseFile(s.fset, path, raw, parser.ParseComments); err != nil {
			return err
		}
		s.gen = ast.IsGenerated(s.file)
		all = append(all, s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestFormat(t *testing.T) {
	for _, s := range sources(t) {
		if s.gen {
			continue
		}
		if out, err := format.Source(s.raw); err != nil || !bytes.Equal(out, s.raw) {
			t.Errorf("%s: gofmt wants changes", s.path)
		}
	}
}

func TestSizes(t *testing.T) {
	for _, s := range sources(t) {
		if s.gen {
			continue
		}
		if n := bytes.Count(s.raw, []byte("\n")); n > maxFile {
			t.Errorf("%s: %d lines, at most %d", s.path, n, maxFile)
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil || strings.HasSuffix(s.dir, "/gen") {
				continue
			}
			if n := s.fset.Position(f.End()).Line - s.fset.Position(f.Pos()).Line + 1; n > maxFunc {
				t.Errorf("%s: %s has %d lines, at most %d", s.path, f.Name.Name, n, maxFunc)
			}
		}
	}
}

func TestDocumentation(t *testing.T) {
	documented := map[string]bool{}
	for _, s := range sources(t) {
		if s.test || s.gen {
			continue
		}
		documented[s.dir] = documented[s.dir] || s.file.Doc != nil
		for _, d := range s.file.Decls {
			checkDoc(t, s, d)
		}
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("%s: the package has no documentation", dir)
		}
	}
}

func checkDoc(t *testing.T, s source, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
			t.Errorf("%s: %s has no documentation", s.path, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if spec.Name.IsExported() && d.Doc == nil && spec.Doc == nil {
					t.Errorf("%s: %s has no documentation", s.path, spec.Name.Name)
				}
			case *ast.ValueSpec:
				if spec.Names[0].IsExported() && d.Doc == nil && spec.Doc == nil {
					t.Errorf("%s: %s has no documentation", s.path, spec.Names[0].Name)
				}
			}
		}
	}
}

// exportedReceiver reports whether a method belongs to an exported type: only
// those are part of a package's documentation.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return false
		}
	}
}

// familyOfModels is what a family of models may import: none of the others.
// byWorkers is what a family imports, beside, that workers on tables train.
var byWorkers = []string{"mllib/internal/parameters", "mllib/internal/workers", "tables"}

var familyOfModels = []string{"internal/fault", "internal/kernel", "mllib/internal/fold", "mllib/internal/model",
	"mllib/internal/num", "mllib/internal/solver", "mllib/internal/train", "rdd", "storage/input", "storage/input/rows",
	"storage/pack"}

// allowed is the import graph: what each package of this module may import of
// it, beside what those import. "*" is everything. What plants bugs imports internal/mutant,
// too (TestPlantedBugsAreApart).
var allowed = map[string][]string{
	".": {"abss", "driver", "executor", "internal/fault", "internal/host", "internal/pace",
		"internal/version", "internal/wire", "prioritizer", "rdd"},
	"internal/host": {"abss", "driver", "executor", "rdd", "storage/pack", "storage/shuffle", "internal/disk",
		"internal/console", "internal/fault", "internal/kernel", "internal/memory", "internal/pace", "internal/plan",
		"internal/runner", "internal/sim", "internal/trust", "internal/version", "internal/web", "internal/wire",
		"storage/input/files", "storage/objects"},
	"cmd/volley": {"*"},
	"driver": {"internal/disk", "abss", "prioritizer", "scheduler", "internal/fault", "internal/plan",
		"internal/wire"},
	"driver/daemon": {"driver", "internal/console", "internal/copies", "internal/disk", "internal/fault",
		"internal/flight", "storage/arrowstream", "storage/input/files", "storage/objects", "storage/saved",
		"internal/memory", "internal/plan", "internal/programs", "internal/traces", "internal/trust",
		"internal/version",
		"internal/web", "internal/wire"},
	"executor": {"storage/pack", "storage/shuffle", "internal/fault", "internal/plan", "internal/runner",
		"internal/version", "internal/wire"},
	"executor/daemon": {"driver", "scheduler", "internal/disk", "internal/fault", "internal/flight",
		"internal/memory", "internal/plan",
		"internal/programs", "internal/trust", "internal/version", "internal/web", "internal/wire"},
	"rdd": {"rdd/internal/exec", "rdd/internal/row", "internal/disk", "scheduler", "storage/input", "storage/saved",
		"storage/input/csv", "storage/input/files", "storage/input/parquet", "storage/input/rows", "storage/pack",
		"storage/objects", "storage/shuffle", "internal/fault", "internal/huge", "internal/kernel", "internal/plan",
		"internal/runner", "internal/wire"},
	"rdd/internal/exec": {"rdd/internal/row", "storage/shuffle", "internal/fault", "internal/huge", "internal/kernel",
		"internal/plan", "internal/runner"},
	"rdd/internal/row": {"storage/input", "storage/input/files", "storage/input/csv", "storage/input/parquet",
		"internal/fault", "internal/huge", "internal/plan"},
	"mllib": {"mllib/als", "mllib/graph", "mllib/lda", "mllib/internal/model", "mllib/internal/parameters",
		"mllib/internal/solver", "mllib/internal/train",
		"mllib/kmeans", "mllib/linear", "mllib/mlp", "rdd"},
	"mllib/als":    append([]string{"tables"}, familyOfModels...),
	"mllib/graph":  {"internal/fault", "internal/huge", "rdd", "storage/input", "tables"},
	"mllib/lda":    append([]string{"tables"}, familyOfModels...),
	"mllib/kmeans": append([]string{"mllib/internal/parameters", "tables"}, familyOfModels...),
	"mllib/linear": append(byWorkers, familyOfModels...),
	"mllib/mlp":    append(byWorkers, familyOfModels...),
	"mllib/internal/train": {"internal/fault", "internal/memory", "mllib/internal/fold", "mllib/internal/num",
		"mllib/internal/solver", "rdd", "storage/input", "storage/input/rows", "storage/pack"},
	"mllib/internal/model": {"internal/disk", "internal/fault", "internal/kernel", "mllib/internal/num", "rdd",
		"storage/input", "storage/input/files", "storage/input/rows", "storage/objects", "storage/pack"},
	"mllib/internal/fold": {"internal/kernel", "mllib/internal/num", "rdd", "storage/input", "storage/input/rows",
		"storage/pack"},
	"mllib/internal/parameters": {"rdd", "storage/pack", "tables"},
	"mllib/internal/workers": {"internal/fault", "internal/kernel", "mllib/internal/num", "mllib/internal/parameters",
		"mllib/internal/train", "tables"},
	"mllib/internal/solver":   {"internal/kernel", "mllib/internal/num"},
	"mllib/internal/num":      {"internal/kernel", "rdd"},
	"mllib/internal/testrows": {},
	"scheduler":               {"internal/fault", "internal/plan"},
	"abss":                    {"internal/plan"},
	"prioritizer":             {"internal/plan"},
	"storage/input": {"storage/input/csv", "storage/input/files", "storage/input/parquet",
		"storage/input/rows", "storage/input/text", "internal/fault", "internal/kernel"},
	"storage/input/csv": {"storage/input/files", "storage/input/rows", "storage/input/text", "internal/disk",
		"internal/fault"},
	"storage/input/parquet": {"storage/input/files", "storage/input/rows", "internal/disk", "internal/fault",
		"internal/memory", "internal/raw"},
	"storage/input/files": {"storage/objects", "internal/disk", "internal/fault"},
	"storage/arrowstream": {"storage/input", "storage/input/csv", "storage/input/files", "storage/input/parquet",
		"storage/objects", "storage/saved", "internal/fault"},
	"internal/flight":    {"storage/arrowstream", "storage/input/files", "internal/fault"},
	"storage/saved":      {"storage/input/files", "storage/objects", "internal/disk", "internal/fault"},
	"storage/objects":    {"internal/fault", "internal/roots"},
	"storage/input/text": {"storage/input/files", "internal/disk", "internal/fault"},
	"storage/input/rows": {"internal/fault"},
	"storage/pack": {"storage/input", "storage/input/rows", "internal/disk", "internal/fault",
		"internal/memory", "internal/plan", "internal/raw"},
	"storage/shuffle":   {"storage/objects", "internal/disk", "internal/fault"},
	"internal/plan":     {},
	"internal/fault":    {},
	"internal/datasets": {},
	"volleytest":        {".", "rdd"},
	"internal/copies":   {"internal/disk", "internal/wire"},
	"internal/disk":     {"internal/fault"},
	"internal/crash":    {"internal/disk"},
	"internal/mutant":   {},
	"internal/memory":   {},
	"internal/huge":     {},
	"internal/pace":     {},
	"internal/chart":    {},
	"internal/history/site": {"driver", "internal/chart", "internal/disk", "internal/fault", "internal/history",
		"internal/pages", "internal/web", "storage/objects"},
	"internal/pages":   {"internal/chart", "internal/web"},
	"internal/console": {"internal/chart", "internal/history", "internal/pages", "internal/web", "internal/wire"},
	"internal/history": {"driver", "internal/audit", "internal/chart", "internal/disk", "internal/fault",
		"internal/plan", "tables/consistency"},
	"internal/experiment": {"internal/chart", "internal/disk", "internal/fault", "internal/history", "internal/pace"},
	"internal/experiment/scale": {"abss", "driver", "internal/experiment", "internal/fault", "internal/pace",
		"internal/plan", "internal/sim"},
	"internal/programs":   {"internal/disk", "internal/fault"},
	"internal/raw":        {},
	"internal/kernel":     {},
	"internal/kernel/gen": {},
	"internal/wire":       {"internal/fault", "internal/trust", "internal/version"},
	"internal/trust":      {"internal/disk", "internal/fault"},
	"deploy/image":        {}, "deploy/kubernetes": {}, "integration/stores": {}, "storage/objects/storetest": {},
	"internal/traces":   {"internal/fault", "internal/roots", "internal/version"},
	"internal/roots":    {},
	"internal/version":  {},
	"internal/web":      {"internal/fault", "internal/trust", "internal/wire"},
	"internal/wire/gen": {},
	"internal/runner":   {"storage/pack", "storage/shuffle", "internal/fault", "internal/plan"},
	"internal/sim": {"abss", "driver", "executor", "prioritizer", "internal/fault", "internal/mutant",
		"internal/pace", "internal/plan", "internal/runner", "internal/wire", "storage/pack"},
	"internal/sim/drivers": {"driver", "driver/daemon", "internal/plan", "internal/sim", "internal/sim/worldtest"},
	"internal/sim/life": {"driver", "driver/daemon", "internal/fault", "internal/plan", "internal/sim",
		"internal/wire"},
	"internal/sim/stages":     {"internal/sim", "scheduler"},
	"internal/sim/shares":     {"internal/plan", "internal/sim", "scheduler"},
	"internal/sim/tables":     {"internal/sim", "tables/consistency"},
	"internal/sim/reassigned": {"internal/sim", "tables/reassign"},
	"internal/sim/worldtest":  {"internal/sim"},
	"tables": {"internal/fault", "internal/plan", "internal/raw", "rdd", "tables/consistency",
		"tables/reassign"},
	"tables/consistency": {"internal/fault", "internal/mutant"},
	"tables/reassign":    {"internal/fault", "internal/mutant"},
	"internal/sim/simulate": {"internal/mutant", "internal/sim", "internal/sim/drivers", "internal/sim/life",
		"internal/sim/reassigned", "internal/sim/shares",
		"internal/sim/stages", "internal/sim/tables"},
	"internal/audit":         {"abss", "driver", "internal/fault", "internal/plan"},
	"internal/audit/logtest": {"abss", "driver", "internal/plan", "internal/wire", "prioritizer"},
	"internal/replay": {"abss", "driver", "rdd", "storage/pack", "storage/shuffle", "internal/audit", "internal/fault",
		"internal/plan", "internal/runner"},
	"internal/storytest": {"internal/fault", "internal/plan"},
	"internal/seeds":     {},
	"internal/synth":     {"internal/fault"},
	"internal/house":     {},
	"internal/lint":      {},
	"internal/mutate":    {},
	"integration":        {"*"},
	"integration/chaos":  {}, "integration/chaos/client": {"integration/chaos", "internal/trust", "internal/wire"},
	"integration/bench": {"*"}, "integration/bench/peers": {"*"}, "integration/lab": {"*"}, "integration/netns": {},
	"integration/digests": {"*"}, "integration/soak": {"*"}, "integration/rows": {"*"},
	"integration/bench/dataflow": {"*"}, "integration/bench/memory": {"*"}, "integration/bench/jobs": {"*"},
	"integration/bench/defaults": {"*"}, "integration/bench/push": {"*"}, "integration/bench/push/program": {"*"},
	"integration/reference":  {},
	"integration/restclient": {},
}

func TestImportGraph(t *testing.T) {
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		may, known := allowed[s.dir]
		if !known && strings.HasPrefix(s.dir, "examples") {
			may, known = []string{".", "rdd", "mllib", "tables"}, true
		}
		if !known {
			t.Errorf("%s: the package is not in the import graph", s.dir)
			continue
		}
		for _, imp := range s.file.Imports {
			path, ours := strings.CutPrefix(strings.Trim(imp.Path.Value, `"`), module)
			if !ours {
				continue
			}
			if path = strings.TrimPrefix(path, "/"); path == "" {
				path = "."
			}
			planting := path == "internal/mutant" && filepath.Base(s.path) == planted
			if !slices.Contains(may, "*") && !slices.Contains(may, path) && !planting {
				t.Errorf("%s imports %s, which the import graph does not allow", s.path, path)
			}
		}
	}
}

// planted is the file of a package with the bugs that the simulator can plant in it.
const planted = "planted_on.go"

// TestPlantedBugsAreApart: no bug can be planted in a build without the tag for it.
func TestPlantedBugsAreApart(t *testing.T) {
	for _, s := range sources(t) {
		if filepath.Base(s.path) == planted && !bytes.HasPrefix(s.raw, []byte("//go:build mutants\n")) {
			t.Errorf("%s is in every build", s.path)
		}
	}
}

// TestProgramsLinkNoDaemon: what only the daemons of a cluster need is in no program of a user's.
func TestProgramsLinkNoDaemon(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "./examples/...")
	cmd.Dir = rootPath
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range strings.Fields(string(out)) {
		for _, not := range []string{"hashicorp/raft", "bbolt", "prometheus", "/daemon", "cobra"} {
			if strings.Contains(path, not) {
				t.Errorf("the programs of examples link %s", path)
			}
		}
	}
}

// pure reports whether a file may only decide: no I/O, clock, goroutine or
// randomness.
func pure(s source) bool {
	begins := func(prefix string) bool { return strings.HasPrefix(filepath.Base(s.path), prefix) }
	switch s.dir {
	case "scheduler", "abss", "prioritizer", "internal/plan", "internal/mutant":
		return true
	case "driver":
		return begins("job") || begins("planted")
	case "driver/daemon":
		return begins("lifecycle") || begins("planted")
	case "executor":
		return begins("agent") || begins("planted")
	}
	return false
}

var impure = []string{"os", "io", "net", "math/rand", "math/rand/v2", "crypto/rand", "sync", "sync/atomic", "context",
	"syscall", "runtime"}

func TestPurePackages(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || !pure(s) {
			continue
		}
		for _, imp := range s.file.Imports {
			if path := strings.Trim(imp.Path.Value, `"`); slices.Contains(impure, path) {
				t.Errorf("%s imports %s, but it must only decide", s.path, path)
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt, *ast.SelectStmt, *ast.SendStmt:
				t.Errorf("%s:%d: no goroutines or channels here", s.path, s.fset.Position(n.Pos()).Line)
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" &&
					slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After", "Tick", "NewTimer", "NewTicker",
						"AfterFunc"}, n.Sel.Name) {
					t.Errorf("%s:%d: time.%s reads a clock", s.path, s.fset.Position(n.Pos()).Line, n.Sel.Name)
				}
			}
			return true
		})
	}
}

// globOfPath finds patterns that are not written out.
var globOfPath = regexp.MustCompile(`filepath\.Glob\([^"]`)

// TestDirectoriesAreNoPatterns: a user's directory may have brackets in its name. What users give as patterns is
// resolved in one place.
func TestDirectoriesAreNoPatterns(t *testing.T) {
	for _, s := range sources(t) {
		if !s.test && s.dir != "storage/input/files" && !strings.HasPrefix(s.dir, "integration") &&
			globOfPath.Match(s.raw) {
			t.Errorf("%s takes a directory's name for a pattern: disk.Glob does not", s.path)
		}
	}
}

func TestNoSleepInTests(t *testing.T) {
	for _, s := range sources(t) {
		if s.test && s.dir != "internal/lint" && bytes.Contains(s.raw, []byte("time.Sleep(")) {
			t.Errorf("%s sleeps", s.path)
		}
	}
}
