package experiment

import "strconv"

// Job is a job of the tables: its data, and the methods that it is made by.
type Job struct {
	Name    string
	Verb    string // of volley run
	Data    Data
	Path    string // of data that are there, instead
	Flags   []string
	Exact   []string // solvers; empty is the job's own
	Convex  bool     // its optimum is known; else the best that any run has reached stands for it
	Paper   []string // flags of the method of the A-BSP paper's own implementation
	Descent []string // flags of steps along gradients of whole splits, beside SSP's and ASP's; empty is the job's own
	Steps   int      // of BSP along such gradients, after which it is where all ways are to come; 0 is the optimum
	Rate    int      // rows per second of speed 1: where rows are dear
	Seeds   int      // of where it begins, on which it depends where it ends
	Endless bool     // it has no rule that ends it but a number of iterations
	Batches bool     // of rows of each split, so that a job that is not convex ends elsewhere under other laws
}

// Size is how large an experiment's data are.
type Size struct {
	Rows, Features int
}

// Jobs returns the jobs of the tables; those that are not convex begin from a number of seeds.
func Jobs(s Size, seeds int) []Job {
	rows, d := strconv.Itoa(s.Rows), strconv.Itoa(s.Features)
	dense := []string{"--rows", rows, "--features", d}
	wide := []string{"--rows", rows, "--features", strconv.Itoa(10 * s.Features)}
	descent := []string{"--solver", "sqrt"}
	penalty := []string{"--reg", "0.01"}
	return []Job{
		{Name: "logistic", Verb: "logistic", Data: Data{"logistic", dense, "parquet"}, Exact: []string{"newton",
			"lbfgs",
			"sdca"}, Convex: true, Paper: descent},
		{Name: "sparse logistic", Verb: "logistic", Data: Data{"sparse", wide, "libsvm"},
			Flags: append([]string{"--features", strconv.Itoa(10 * s.Features)}, penalty...), Exact: []string{"newton",
				"lbfgs", "sdca"}, Convex: true, Paper: descent},
		{Name: "svm", Verb: "svm", Data: Data{"svm", dense, "parquet"}, Flags: penalty, Exact: []string{"interior",
			"newton", "sdca", "auto"}, Convex: true, Paper: descent},
		{Name: "lasso", Verb: "lasso", Data: Data{"lasso", dense, "parquet"}, Flags: penalty, Exact: []string{"cd",
			"sdca"},
			Convex: true, Paper: descent},
		{Name: "ridge", Verb: "ridge", Data: Data{"ridge", dense, "parquet"}, Flags: penalty, Exact: []string{"normal",
			"lbfgs"}, Convex: true, Paper: descent},
		{Name: "softmax", Verb: "softmax", Data: Data{"classes", dense, "parquet"}, Flags: penalty,
			Exact: []string{"lbfgs", "auto"}, Convex: true, Paper: descent},
		{Name: "mlp", Verb: "mlp", Data: Data{"classes", dense, "parquet"}, Flags: []string{"--layers", "16",
			"--max-iterations", "600"}, Paper: []string{"--solver", "constant"}, Seeds: seeds, Batches: true,
			Descent: []string{"--solver", "constant", "--momentum", "0"}},
		{Name: "kmeans", Verb: "kmeans", Data: Data{"kmeans", append(dense, "--k", "10"), "parquet"},
			Flags: []string{"--k", "10", "--centers", "random"}, Seeds: seeds},
		{Name: "als", Verb: "als", Data: Data{"als", []string{"--rows", strconv.Itoa(10 * s.Rows), "--users",
			strconv.Itoa(1 + s.Rows/3), "--items", strconv.Itoa(1 + s.Rows/30)}, "parquet"},
			Flags: []string{"--rank", "8", "--reg", "0.05", "--max-iterations", "40"},
			Rate:  defaultRate / 30, Seeds: seeds}, // a row has all its ratings
	}
}

// Law is a law of executors' speeds, several where it has seeds.
type Law struct {
	Name   string
	Paces  []string
	Flags  []string
	Splits int
}

// anyExecutors is how many there are under laws for any number.
const anyExecutors = 8

// Laws returns the laws of the tables; those with seeds have a number of them.
func Laws(seeds int) []Law {
	any := []string{"--executors", strconv.Itoa(anyExecutors)}
	return []Law{
		{"physical", []string{"physical"}, nil, 48},
		{"multi-tenant", seeded("multi-tenant:", seeds), nil, 72},
		{"one straggler", []string{"one-straggler"}, nil, 24},
		{"delayed", []string{"delayed:1p"}, any, 32},
		{"disrupter", []string{"disrupter:1p"}, any, 32},
		{"slow worker", []string{"slow-worker:400"}, any, 32},
		{"power law", []string{"power-law:7"}, any, 32},
		{"even", []string{"static:1,1,1,1,1,1,1,1"}, any, 32},
	}
}

func seeded(name string, seeds int) (out []string) {
	for k := range seeds {
		out = append(out, name+strconv.Itoa(k+1))
	}
	return out
}
