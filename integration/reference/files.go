package reference

import (
	"archive/zip"
	"bufio"
	"compress/bzip2"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// files makes files of data sets; the first error stays.
type files struct {
	shared, tmp string
	err         error
}

// path returns a file that is used as it is.
func (f *files) path(name string) string {
	path := filepath.Join(f.shared, name)
	if _, err := os.Stat(path); err != nil && f.err == nil {
		f.err = err
	}
	return path
}

// open opens a file, unpacked.
func (f *files) open(name string) io.Reader {
	file, err := os.Open(f.path(name))
	if err != nil {
		f.fail(err)
		return strings.NewReader("")
	}
	switch filepath.Ext(name) {
	case ".gz":
		z, err := gzip.NewReader(file)
		if err != nil {
			f.fail(err)
			return strings.NewReader("")
		}
		return z
	case ".bz2":
		return bzip2.NewReader(file)
	}
	return file
}

func (f *files) fail(err error) {
	if err != nil && f.err == nil {
		f.err = err
	}
}

// write makes a file of lines.
func (f *files) write(name string, lines func(w *bufio.Writer)) string {
	path := filepath.Join(f.tmp, name)
	file, err := os.Create(path)
	if err != nil {
		f.fail(err)
		return path
	}
	w := bufio.NewWriter(file)
	lines(w)
	f.fail(w.Flush())
	f.fail(file.Close())
	return path
}

// lines hands out the lines of a file.
func (f *files) lines(name string, yield func(i int, line string)) {
	s := bufio.NewScanner(f.open(name))
	s.Buffer(nil, 1<<24)
	for i := 0; s.Scan(); i++ {
		yield(i, s.Text())
	}
	f.fail(s.Err())
}

// numbers returns a table of numbers.
func (f *files) numbers(name string) (rows [][]float64) {
	f.lines(name, func(_ int, line string) {
		var row []float64
		for _, text := range strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == ',' }) {
			v, err := strconv.ParseFloat(text, 64)
			f.fail(err)
			row = append(row, v)
		}
		rows = append(rows, row)
	})
	return rows
}

// diabetes returns the data as its reference values have it: columns centred
// and brought to length 1, the target in front.
func (f *files) diabetes() string {
	x, y := f.numbers("sklearn/diabetes_data_raw.csv.gz"), f.numbers("sklearn/diabetes_target.csv.gz")
	if f.err != nil {
		return ""
	}
	d := len(x[0])
	mean, length := make([]float64, d), make([]float64, d)
	for j := range d {
		for i := range x {
			mean[j] += x[i][j] / float64(len(x))
		}
		for i := range x {
			length[j] += (x[i][j] - mean[j]) * (x[i][j] - mean[j])
		}
	}
	return f.write("diabetes.csv", func(w *bufio.Writer) {
		for i := range x {
			fmt.Fprint(w, y[i][0])
			for j := range d {
				fmt.Fprintf(w, ",%v", (x[i][j]-mean[j])/math.Sqrt(length[j]))
			}
			fmt.Fprintln(w)
		}
	})
}

// blog returns the training table, its target in front.
func (f *files) blog() string {
	z, err := zip.OpenReader(f.path("blogfeedback/BlogFeedback.zip"))
	if err != nil {
		f.fail(err)
		return ""
	}
	defer z.Close()
	return f.write("blog.csv", func(w *bufio.Writer) {
		for _, file := range z.File {
			if !strings.HasSuffix(file.Name, "blogData_train.csv") {
				continue
			}
			r, err := file.Open()
			if err != nil {
				f.fail(err)
				return
			}
			s := bufio.NewScanner(r)
			for s.Scan() {
				line := strings.TrimSpace(s.Text())
				at := strings.LastIndexByte(line, ',')
				fmt.Fprintf(w, "%s,%s\n", line[at+1:], line[:at])
			}
			f.fail(s.Err())
		}
	})
}

// scaled copies rows of LIBSVM into a training and a test file, the first n
// for training, each row's values as scale says.
func (f *files) scaled(name, as string, train int, scale func(values []float64)) (string, string) {
	var rows []string
	f.lines(name, func(_ int, line string) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			return
		}
		at, values := make([]string, 0, len(fields)), make([]float64, 0, len(fields))
		for _, p := range fields[1:] {
			k, v, _ := strings.Cut(p, ":")
			x, err := strconv.ParseFloat(v, 64)
			f.fail(err)
			at, values = append(at, k), append(values, x)
		}
		scale(values)
		var b strings.Builder
		b.WriteString(fields[0])
		for i, v := range values {
			fmt.Fprintf(&b, " %s:%v", at[i], v)
		}
		rows = append(rows, b.String())
	})
	part := func(end string, rows []string) string {
		return f.write(as+end+".libsvm", func(w *bufio.Writer) {
			for _, r := range rows {
				fmt.Fprintln(w, r)
			}
		})
	}
	train = min(train, len(rows))
	return part("", rows[:train]), part(".test", rows[train:])
}

// pendigits returns the pendigits data, scaled to [0, 1].
func (f *files) pendigits() (train, test string) {
	return f.scaled("pendigits/pendigits", "pendigits", 7494, func(v []float64) {
		for i := range v {
			v[i] /= 100
		}
	})
}

// news20 has rows of length 1.
func (f *files) news20() (train, test string) {
	return f.scaled("news20/news20.bz2", "news20", 12748, func(v []float64) {
		var sq float64
		for _, x := range v {
			sq += x * x
		}
		for i := range v {
			v[i] /= math.Sqrt(sq)
		}
	})
}

// mnist returns the test part of MNIST, pixels in [0, 1], the first 8,000 for training.
func (f *files) mnist() (train, test string) {
	pixels, err := io.ReadAll(f.open("mnist-t10k/t10k-images-idx3-ubyte.gz"))
	f.fail(err)
	labels, err := io.ReadAll(f.open("mnist-t10k/t10k-labels-idx1-ubyte.gz"))
	f.fail(err)
	if f.err != nil || len(pixels) < 16 || len(labels) < 8 {
		return "", ""
	}
	n := int(binary.BigEndian.Uint32(labels[4:]))
	pixels, labels = pixels[16:], labels[8:]
	size := len(pixels) / n
	part := func(name string, from, to int) string {
		return f.write(name, func(w *bufio.Writer) {
			for i := from; i < to; i++ {
				fmt.Fprint(w, labels[i])
				for _, p := range pixels[i*size : (i+1)*size] {
					fmt.Fprintf(w, ",%.6g", float64(p)/255)
				}
				fmt.Fprintln(w)
			}
		})
	}
	return part("mnist.csv", 0, 8000), part("mnist.test.csv", 8000, n)
}

// lowRank returns some of the entries of a matrix of rank 3.
func (f *files) lowRank() string {
	const users, items, rank, every = 6000, 2400, 3, 40
	rng := rand.New(rand.NewPCG(5, 1))
	vectors := func(n int) [][rank]float64 {
		out := make([][rank]float64, n)
		for i := range out {
			for k := range rank {
				out[i][k] = rng.NormFloat64()
			}
		}
		return out
	}
	u, v := vectors(users), vectors(items)
	return f.write("lowrank.csv", func(w *bufio.Writer) {
		fmt.Fprintln(w, "user,item,rating")
		for i := range u {
			for j := range v {
				if rng.IntN(every) == 0 {
					fmt.Fprintf(w, "%d,%d,%v\n", i, j, u[i][0]*v[j][0]+u[i][1]*v[j][1]+u[i][2]*v[j][2])
				}
			}
		}
	})
}
