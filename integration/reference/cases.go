package reference

import (
	"fmt"
	"math"
	"strconv"
)

// Case is a job on data, and what it should come to.
type Case struct {
	Name, Job string
	Flags     []string
	Metric    string  // that Want is of; empty is the objective
	Want      float64 // published, or computed with other tools
	Within    float64 // relatively, of whole steps
	Cut       float64 // the same of steps cut on uneven executors
	OneSided  bool    // better is as good
	Nonzeros  float64 // weights that are not zero; 0 is not known
	Long      bool    // takes tens of seconds
	CutFlags  []string
}

// Of returns what a run came to.
func (c *Case) Of(objective float64, metrics map[string]float64) float64 {
	if c.Metric == "" {
		return objective
	}
	return metrics[c.Metric]
}

// Off returns how far a value is from what it should be, relatively: nothing
// where it is better and that is as good.
func (c *Case) Off(got float64) float64 {
	off := (got - c.Want) / math.Abs(c.Want)
	if c.higher() {
		off = -off
	}
	if c.OneSided {
		return max(0, off)
	}
	return math.Abs(off)
}

// higher reports whether more is better.
func (c *Case) higher() bool { return c.Metric == "accuracy" || c.Metric == "r2" }

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// Cases returns the cases of a directory of data sets; files are made in tmp.
func Cases(shared, tmp string) ([]Case, error) {
	f := &files{shared: shared, tmp: tmp}
	var all []Case
	all = append(all, f.linear()...)
	all = append(all, f.classes()...)
	all = append(all, f.clusters()...)
	all = append(all, f.ratings()...)
	return all, f.err
}

func (f *files) linear() []Case {
	const perRow = 1.0 / 32561
	a9a, test := f.path("a9a/a9a.gz"), f.path("a9a/a9a.t.gz")
	diabetes, blog := f.diabetes(), f.blog()
	return []Case{
		{Name: "a9a, logistic, λ = 1/n", Job: "logistic",
			Flags: []string{"--data", a9a, "--intercept=false", "--reg", number(perRow)}, Want: 0.3233795825,
			Within: 1e-6, Cut: 1e-6},
		{Name: "a9a, the same, test accuracy", Job: "logistic",
			Flags:  []string{"--data", a9a, "--test", test, "--intercept=false", "--reg", number(perRow)},
			Metric: "accuracy", Want: 0.84989, Within: 2e-3, Cut: 2e-3},
		// ½‖w‖² + 0.1·Σ over 0.1·n is the mean hinge + (λ/2)‖w‖² with λ = 1/(0.1·n).
		{Name: "a9a, hinge, C = 0.1", Job: "svm",
			Flags:  []string{"--data", a9a, "--intercept=false", "--reg", number(10 * perRow)},
			Want:   1149.904 / (0.1 * 32561),
			Within: 1e-6, Cut: 1e-6},
		{Name: "a9a, the same, test accuracy", Job: "svm",
			Flags:  []string{"--data", a9a, "--test", test, "--intercept=false", "--reg", number(10 * perRow)},
			Metric: "accuracy", Want: 0.85025, Within: 2e-3, Cut: 2e-3},
		{Name: "a9a, squared hinge, λ = 1/n", Job: "svm",
			Flags: []string{"--data", a9a, "--intercept=false", "--loss", "squared-hinge", "--reg", number(perRow)},
			Want:  0.4220508370, Within: 1e-6, Cut: 1e-6},
		{Name: "diabetes, lasso α 0.1", Job: "lasso", Flags: []string{"--data", diabetes, "--reg", "0.1"},
			Want: 1629.054543, Within: 1e-7, Cut: 1e-7, Nonzeros: 7},
		{Name: "diabetes, lasso α 1", Job: "lasso", Flags: []string{"--data", diabetes, "--reg", "1"},
			Want: 2586.943193, Within: 1e-7, Cut: 1e-7, Nonzeros: 3},
		{Name: "diabetes, linear", Job: "linear", Flags: []string{"--data", diabetes}, Metric: "r2", Want: 0.51775,
			Within: 1e-4, Cut: 1e-4},
		{Name: "blogfeedback, lasso α 1", Job: "lasso", Flags: []string{"--data", blog, "--standardize", "--reg", "1"},
			Want: 493.14494, Within: 1e-7, Cut: 1e-7, Nonzeros: 8},
	}
}

func (f *files) classes() []Case {
	pen, penTest := f.pendigits()
	mnist, mnistTest := f.mnist()
	news, newsTest := f.news20()
	return []Case{
		{Name: "pendigits, softmax, λ = 1/n", Job: "softmax",
			Flags:  []string{"--data", pen, "--test", penTest, "--reg", number(1.0 / 7494), "--max-iterations", "3000"},
			Metric: "accuracy", Want: 0.8991, Within: 3e-3, Cut: 3e-3},
		{Name: "pendigits, mlp of 64", Job: "mlp",
			Flags: []string{"--data", pen, "--test", penTest, "--reg", "1e-5", "--layers", "64", "--step-size", "0.01",
				"--max-iterations", "800"},
			Metric: "accuracy", Want: 0.971, Within: 1.5e-2, Cut: 1.5e-2, OneSided: true, Long: true},
		{Name: "mnist-t10k, softmax, C = 0.1", Job: "softmax",
			Flags:  []string{"--data", mnist, "--test", mnistTest, "--reg", number(1 / (0.1 * 8000))},
			Metric: "accuracy", Want: 0.9345, Within: 5e-3, Cut: 5e-3, Long: true},
		{Name: "mnist-t10k, mlp of 100", Job: "mlp",
			Flags: []string{"--data", mnist, "--test", mnistTest, "--reg", "1e-5", "--layers", "100", "--step-size",
				"0.002", "--batch-fraction", "0.05", "--max-iterations", "1200"},
			Metric: "accuracy", Want: 0.9595, Within: 1e-2, Cut: 1.5e-2, OneSided: true, Long: true,
			CutFlags: []string{"--batch-fraction", "1", "--max-iterations", "300", "--step-size", "0.005"}},
		{Name: "news20, softmax, C = 10", Job: "softmax",
			Flags: []string{"--data", news, "--test", newsTest, "--features", "62061", "--reg",
				number(1.0 / (10 * 12748)), "--tol", "1e-5"},
			Metric: "accuracy", Want: 0.8230, Within: 1e-2, Cut: 1e-2, OneSided: true, Long: true},
	}
}

func (f *files) clusters() []Case {
	iris := f.path("sklearn/iris.csv")
	all := []Case{{Name: "iris, k-means, k = 3", Job: "kmeans",
		Flags: []string{"--data", iris, "--label", "virginica", "--k", "3", "--restarts", "10"}, Want: 78.85144,
		Within: 1e-6, Cut: 1e-2}}
	for i, want := range []float64{8.9176157e12, 1.32791622e13, 1.68898369e13, 1.57037871e13} {
		data := f.path(fmt.Sprintf("sipu/s%d.data.gz", i+1))
		all = append(all, Case{Name: fmt.Sprintf("s%d, k-means, k = 15, best of 10", i+1), Job: "kmeans",
			Flags: []string{"--data", data, "--k", "15", "--restarts", "10"},
			Want:  want, Within: 1e-2, Cut: 1e-2, OneSided: true})
	}
	birch := f.path("sipu/birch1.data.gz")
	return append(all, Case{Name: "birch1, k-means, k = 100, best of 10", Job: "kmeans",
		Flags: []string{"--data", birch, "--k", "100", "--restarts", "10"},
		Want:  9.2772858e13, Within: 3e-2, Cut: 3e-2, OneSided: true, Long: true})
}

func (f *files) ratings() []Case {
	return []Case{
		{Name: "MovieLens u1, als, rank 10, λ 0.1", Job: "als",
			Flags: []string{"--data", f.path("ml-100k/u1.base.gz"), "--test", f.path("ml-100k/u1.test"),
				"--rank", "10", "--reg", "0.1", "--max-iterations", "15", "--tol", "0"}, Metric: "rmse", Want: 0.942,
			OneSided: true},
		{Name: "a matrix of rank 3, als", Job: "als",
			Flags: []string{"--data", f.lowRank(), "--rank", "3", "--reg", "1e-9", "--max-iterations", "60", "--tol",
				"0"},
			Want: 1e-3, OneSided: true},
	}
}
