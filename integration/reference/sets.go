package reference

import (
	"archive/zip"
	"bufio"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Set is a data set, parted once for all systems, and what is trained on it.
type Set struct {
	Name, Train, Test string
	Columns           []string // flags that name columns
	Trials            []Trial
}

// Trial is a job with its defaults, and the metric of the test rows it is held to.
type Trial struct {
	Job    string
	Flags  []string // that say what the task is
	Metric string
}

// Name returns the trial's in tables and files: the job, and what its task is.
func (t Trial) Name() string {
	return strings.Join(append([]string{t.Job}, t.Flags...), " ")
}

// Sets writes the data sets of the comparison of defaults under a directory, so that
// every system reads the same files.
func Sets(shared, dir string) ([]Set, error) {
	f := &files{shared: shared, tmp: dir}
	all := f.twoClasses()
	all = append(all, f.manyClasses()...)
	all = append(all, f.targets()...)
	return append(all, f.likes()...), f.err
}

func trials(metric string, jobs ...string) (out []Trial) {
	for _, j := range jobs {
		t := Trial{Job: j, Metric: metric}
		if j == "mlp" && metric == "r2" {
			t.Flags = []string{"--regression"}
		}
		out = append(out, t)
	}
	return out
}

// twoClasses returns the sets of two labels.
func (f *files) twoClasses() []Set {
	cancer, cancerTest := f.fifth("breast-cancer/breast-cancer", "breast-cancer.libsvm", "", 0, same)
	rcv, rcvTest := f.vowpal("rcv1_small/rcv1_small.dat.gz", "rcv1.libsvm"),
		f.vowpal("rcv1_small/rcv1_small_test.data", "rcv1.test.libsvm")
	higgs, higgsTest := f.headed("higgs_sample/binary.train.gz", "higgs.csv"),
		f.headed("higgs_sample/binary.test", "higgs.test.csv")
	return []Set{
		{Name: "a9a", Train: f.path("a9a/a9a.gz"), Test: f.path("a9a/a9a.t.gz"),
			Trials: trials("accuracy", "logistic", "svm")},
		{Name: "agaricus", Train: f.path("agaricus/agaricus.txt.train"), Test: f.path("agaricus/agaricus.txt.test"),
			Trials: trials("accuracy", "logistic", "svm")},
		{Name: "breast-cancer", Train: cancer, Test: cancerTest, Trials: trials("accuracy", "logistic", "svm")},
		{Name: "higgs_sample", Train: higgs, Test: higgsTest, Trials: trials("accuracy", "logistic", "svm", "mlp")},
		{Name: "rcv1_small", Train: rcv, Test: rcvTest, Trials: trials("accuracy", "logistic", "svm")},
	}
}

// manyClasses returns the sets of more labels.
func (f *files) manyClasses() []Set {
	digits, digitsTest := f.fifth("sklearn/digits.csv.gz", "digits.csv", table(64), 0, lastFirst)
	mnist, mnistTest := f.mnist()
	news, newsTest := f.news20()
	pen, penTest := f.scaled("pendigits/pendigits", "pendigits.raw", 7494, func([]float64) {})
	return []Set{
		{Name: "pendigits", Train: pen, Test: penTest, Trials: trials("accuracy", "softmax", "mlp")},
		{Name: "digits", Train: digits, Test: digitsTest, Trials: trials("accuracy", "softmax", "mlp")},
		{Name: "mnist-t10k", Train: mnist, Test: mnistTest, Columns: []string{"--label", "0"},
			Trials: trials("accuracy", "softmax", "mlp")},
		{Name: "news20", Train: news, Test: newsTest, Trials: trials("accuracy", "softmax")},
	}
}

// targets returns the sets whose labels are numbers; features are as they come.
func (f *files) targets() []Set {
	all := []string{"linear", "ridge", "lasso", "elasticnet", "mlp"}
	abalone, abaloneTest := f.fifth("abalone/abalone.data", "abalone.csv", table(10), 0, abaloneRow)
	houses, housesTest := f.fifth("cal_housing/cal_housing.data.gz", "cal_housing.csv", table(8), 0, lastFirst)
	wine, wineTest := f.fifth("winequality/winequality-red.csv", "winequality.csv", table(11), 1, lastFirst)
	boston, bostonTest := f.fifth("housing/housing_scale", "housing.libsvm", "", 0, same)
	diabetes, diabetesTest := f.rawDiabetes()
	blogs, blogsTest := f.blogs("blogData_train"), f.blogs("blogData_test")
	return []Set{
		{Name: "abalone", Train: abalone, Test: abaloneTest, Trials: trials("r2", all...)},
		{Name: "cal_housing", Train: houses, Test: housesTest, Trials: trials("r2", all...)},
		{Name: "diabetes", Train: diabetes, Test: diabetesTest, Trials: trials("r2", all...)},
		{Name: "winequality", Train: wine, Test: wineTest, Trials: trials("r2", all...)},
		{Name: "housing", Train: boston, Test: bostonTest, Trials: trials("r2", all...)},
		{Name: "blogfeedback", Train: blogs, Test: blogsTest,
			Trials: trials("r2", "linear", "ridge", "lasso", "elasticnet")},
	}
}

// likes returns the sets of ratings.
func (f *files) likes() []Set {
	both := []Trial{{Job: "als", Metric: "rmse"}, {Job: "als", Flags: []string{"--implicit"}, Metric: "ndcg_at_10"}}
	ml := func(name string) string { return f.ratingsTable("ml-100k/"+name, name+".csv") }
	trust, trustTest := f.fifth("filmtrust/ratings.txt", "filmtrust.csv", "user,item,rating", 0, ratingRow)
	return []Set{
		{Name: "ml-100k u1", Train: ml("u1.base.gz"), Test: ml("u1.test"), Trials: both},
		{Name: "filmtrust", Train: trust, Test: trustTest, Trials: both},
	}
}

// table returns a header of a label and n features.
func table(features int) string {
	var b strings.Builder
	b.WriteString("label")
	for j := range features {
		fmt.Fprintf(&b, ",x%d", j+1)
	}
	return b.String()
}

func same(line string) string { return line }

// lastFirst returns a row of a table with its last field in front.
func lastFirst(line string) string {
	line = strings.ReplaceAll(line, ";", ",")
	at := strings.LastIndexByte(line, ',')
	return line[at+1:] + "," + line[:at]
}

// abaloneRow has a column for each sex.
func abaloneRow(line string) string {
	sex, rest, _ := strings.Cut(line, ",")
	return lastFirst(map[string]string{"M": "1,0,0", "F": "0,1,0", "I": "0,0,1"}[sex] + "," + rest)
}

func ratingRow(line string) string {
	f := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' })
	return strings.Join(f[:3], ",")
}

// fifth holds every fifth row out for testing, after a head of a few lines.
func (f *files) fifth(name, as, head string, skip int, row func(string) string) (train, test string) {
	var parts [2][]string
	n := 0
	f.lines(name, func(i int, line string) {
		if line = strings.TrimSpace(line); i < skip || line == "" {
			return
		}
		k := 0
		if n%5 == 4 {
			k = 1
		}
		n++
		parts[k] = append(parts[k], row(line))
	})
	return f.rows(as, head, parts[0]), f.rows("test."+as, head, parts[1])
}

// rows writes a file of rows under a head.
func (f *files) rows(as, head string, rows []string) string {
	return f.write(as, func(w *bufio.Writer) {
		if head != "" {
			fmt.Fprintln(w, head)
		}
		for _, r := range rows {
			fmt.Fprintln(w, r)
		}
	})
}

// headed returns a table of tabs as one of commas, its columns named.
func (f *files) headed(name, as string) string {
	var rows []string
	f.lines(name, func(_ int, line string) { rows = append(rows, strings.ReplaceAll(line, "\t", ",")) })
	return f.rows(as, table(strings.Count(rows[0], ",")), rows)
}

func (f *files) ratingsTable(name, as string) string {
	var rows []string
	f.lines(name, func(_ int, line string) { rows = append(rows, ratingRow(line)) })
	return f.rows(as, "user,item,rating", rows)
}

// vowpal returns text of Vowpal Wabbit as LIBSVM, its columns in order.
func (f *files) vowpal(name, as string) string {
	var rows []string
	f.lines(name, func(_ int, line string) {
		label, rest, ok := strings.Cut(line, "|")
		if !ok {
			return
		}
		fields := strings.Fields(rest)
		rows = append(rows, strings.Fields(label)[0]+" "+ordered(fields[1:]))
	})
	return f.rows(as, "", rows)
}

// ordered returns pairs of a column and its value by their columns, from 1 on.
func ordered(pairs []string) string {
	column := func(p string) int {
		at, _, _ := strings.Cut(p, ":")
		n, _ := strconv.Atoi(at)
		return n
	}
	slices.SortStableFunc(pairs, func(a, b string) int { return column(a) - column(b) })
	return strings.Join(slices.CompactFunc(pairs, func(a, b string) bool { return column(a) == column(b) }), " ")
}

// rawDiabetes returns the table with its columns as they were measured.
func (f *files) rawDiabetes() (train, test string) {
	x, y := f.numbers("sklearn/diabetes_data_raw.csv.gz"), f.numbers("sklearn/diabetes_target.csv.gz")
	var parts [2][]string
	for i := range x {
		row := []string{number(y[i][0])}
		for _, v := range x[i] {
			row = append(row, number(v))
		}
		k := 0
		if i%5 == 4 {
			k = 1
		}
		parts[k] = append(parts[k], strings.Join(row, ","))
	}
	return f.rows("diabetes.raw.csv", table(10), parts[0]), f.rows("test.diabetes.raw.csv", table(10), parts[1])
}

// blogs returns the tables whose names begin so, one after the other.
func (f *files) blogs(part string) string {
	z, err := zip.OpenReader(f.path("blogfeedback/BlogFeedback.zip"))
	if err != nil {
		f.fail(err)
		return ""
	}
	defer z.Close()
	var rows []string
	for _, file := range z.File {
		if !strings.HasPrefix(filepath.Base(file.Name), part) {
			continue
		}
		r, err := file.Open()
		if err != nil {
			f.fail(err)
			return ""
		}
		for s := bufio.NewScanner(r); s.Scan(); {
			rows = append(rows, lastFirst(strings.TrimSpace(s.Text())))
		}
	}
	return f.rows(part+".csv", table(280), rows)
}
