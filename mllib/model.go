package mllib

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/mllib/internal/num"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/input"
)

// Model is what a training job comes to. A saved one is plain data: a directory of
// model.json and weights.arrow, with no time, path or identity in it, nor anything
// of how it was trained.
type Model interface {
	// Save writes the model's directory; it appears whole or not at all. An
	// existing one is an error unless overwrite is set.
	Save(dir string, overwrite bool) error
	// Predict writes a line of CSV for each row, in input order, after a header.
	Predict(ctx context.Context, in rdd.Input, uris []string, w io.Writer) (rows int64, err error)
	// Evaluate computes the metrics that the model's users expect.
	Evaluate(ctx context.Context, in rdd.Input, uris []string) (map[string]float64, error)
	// Describe is the model in a few lines.
	Describe() string
}

// knowing says what names the columns of a model's data may have.
func knowing(in rdd.Input, p *input.Prepared) rdd.Input {
	if p == nil || in.Header != nil {
		return in
	}
	if !p.Header {
		in.Header = new(bool) // false, as in training
		return in
	}
	for _, c := range p.Columns {
		in.Known = append(in.Known, c.Name)
	}
	return in
}

// preparing says how a model's data are to be read: raw, and prepared as those that
// it was made from.
func preparing(in rdd.Input, p *input.Prepared) rdd.Input {
	if p != nil {
		in.Prepare, in.Fitted = input.Prepare{}, p
		in = knowing(in, p)
	}
	return in
}

// known is what a model knows of the data that it was trained on.
type known struct {
	features, indexBase int
	label, weight       string
	prepared            *input.Prepared
}

// open reads data in the way that the model was trained.
func (k known) open(in rdd.Input, uris []string) (*input.Source, error) {
	if in.IndexBase == 0 {
		in.IndexBase = k.indexBase + 1
	}
	in, err := k.weighed(in, uris)
	if err != nil {
		return nil, err
	}
	if in.Label == "" && !in.NoLabel {
		in.Label = k.label
	}
	return input.Open(preparing(in, k.prepared), uris...)
}

// raw says how data are to be read of which every column but that of weights is a
// feature.
func (k known) raw(in rdd.Input) rdd.Input {
	in = knowing(in, k.prepared)
	in.Label, in.NoLabel, in.Prepare, in.Fitted = "", true, input.Prepare{}, nil
	return in
}

// width is how many columns features are made of.
func (k known) width() int {
	if k.prepared != nil {
		return len(k.prepared.Columns)
	}
	return k.features
}

// weighed names the column of weights, where the model was trained with one and the
// data have it: one of its name, or, where columns have numbers, as many columns as
// in training. With one less it might be the label that is missing.
func (k known) weighed(in rdd.Input, uris []string) (rdd.Input, error) {
	if in.Weight != "" || k.weight == "" {
		return in, nil
	}
	src, err := input.Open(k.raw(in), uris...)
	if err != nil {
		return in, nil // the reading that follows says what is wrong
	}
	trained := k.width() + 1
	if k.label != "" {
		trained++
	}
	names, columns := src.FeatureNames(), src.Width()
	switch {
	case names != nil:
		if slices.Contains(names, k.weight) {
			in.Weight = k.weight
		}
	case columns < 0: // rows of lists have names beside them, which only a reader knows
		with := k.raw(in)
		with.Weight = k.weight
		if _, err := input.Open(with, uris...); err == nil {
			in.Weight = k.weight
		}
	case columns == trained:
		in.Weight = k.weight
	case columns == trained-1 && k.label != "" && in.Label == "":
		return in, fault.Newf(fault.Usage, "read", strings.Join(uris, " "), "it has %d columns without names, the training data had %d: is the label missing, or the weight?", columns, trained).
			WithHint("--label, none or a number, and --weight-column say which columns are there")
	}
	return in, nil
}

// hasLabel reports whether data to be predicted has the label's column: a table
// with as many columns as the model has features, or without the column of the
// label's name, has not.
func (k known) hasLabel(in rdd.Input, uris []string) bool {
	in, err := k.weighed(in, uris)
	if err != nil {
		return true
	}
	src, err := input.Open(k.raw(in), uris...)
	if err != nil {
		return true // the reading that follows says what is wrong
	}
	names := src.FeatureNames()
	if names == nil || k.label == "" {
		return src.Width() != k.width()
	}
	return slices.Contains(names, k.label) || src.Width() != k.width()
}

// modelVersion is the version of the directory's layout.
const modelVersion = 1

// modelHead begins every model.json.
type modelHead struct {
	Version int    `json:"version"`
	Job     string `json:"job"`
}

// unknownModel refuses a model of a kind that this program does not know.
func unknownModel(dir, job string) error {
	return fault.Newf(fault.BadInput, "load the model", dir, "a model of the job %q is not known to this program", job)
}

// save writes a model whose model.json is head, with its numbers.
func save(dir string, overwrite bool, head any, numbers []float64) error {
	if err := CanSave(dir, overwrite); err != nil {
		return err
	}
	if err := disk.MkdirSynced(filepath.Dir(dir), 0o755); err != nil {
		return saveError(dir, err)
	}
	tmp, err := disk.MkdirTemp(filepath.Dir(dir), ".model-*")
	if err != nil {
		return saveError(dir, err)
	}
	defer disk.RemoveAll(tmp)
	if err := write(tmp, head, numbers); err != nil {
		return saveError(dir, err)
	}
	return replaceDir(tmp, dir)
}

// onlyAModel refuses to replace anything but a model or an empty directory.
func onlyAModel(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.Name() != "model.json" && e.Name() != "weights.arrow" {
			err = errors.New("it holds " + e.Name())
		}
	}
	if err != nil {
		return fault.Newf(fault.Usage, "save the model to", dir, "it is not a model's directory").WithHint("choose another --out")
	}
	return nil
}

// CanSave reports whether a model may be saved to a directory, before there is
// one to save.
func CanSave(dir string, overwrite bool) error {
	if _, err := os.Stat(dir); err == nil && !overwrite {
		return fault.Newf(fault.Usage, "save the model to", dir, "it exists already").WithHint("add --overwrite, or choose another directory")
	}
	return onlyAModel(dir)
}

func saveError(dir string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fault.New(fault.NoResources, "save the model to", dir, err)
}

// replaceDir puts a finished directory in its place, at once.
func replaceDir(tmp, dir string) error {
	err := os.Chmod(tmp, 0o755)
	if err == nil {
		err = disk.PutDir(tmp, dir, true)
	}
	if err != nil {
		return saveError(dir, err)
	}
	return nil
}

func write(dir string, head any, numbers []float64) error {
	raw, err := json.MarshalIndent(head, "", "  ")
	if err != nil {
		return err
	}
	if err := disk.WriteSynced(filepath.Join(dir, "model.json"), append(raw, '\n'), 0o644); err != nil {
		return err
	}
	weights, err := encodeWeights(numbers)
	if err != nil {
		return err
	}
	if err := disk.WriteSynced(filepath.Join(dir, "weights.arrow"), weights, 0o644); err != nil {
		return err
	}
	return disk.SyncDir(dir)
}

// memFile is a byte buffer that can say its position, as the Arrow file
// writer wants.
type memFile struct{ bytes.Buffer }

func (f *memFile) Seek(int64, int) (int64, error) { return int64(f.Len()), nil }

func encodeWeights(w []float64) ([]byte, error) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "weight", Type: arrow.PrimitiveTypes.Float64}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	b.Field(0).(*array.Float64Builder).AppendValues(w, nil)
	rec := b.NewRecord()
	defer rec.Release()
	var f memFile
	out, err := ipc.NewFileWriter(&f, ipc.WithSchema(schema))
	if err == nil {
		err = out.Write(rec)
	}
	if err == nil {
		err = out.Close()
	}
	return f.Bytes(), err
}

// LoadModel reads a model's directory.
func LoadModel(dir string) (Model, error) {
	raw, err := os.ReadFile(filepath.Join(dir, "model.json"))
	if err != nil {
		return nil, loadError(dir, err)
	}
	var head struct {
		modelHead
		Loss Loss `json:"loss"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, loadError(dir, err)
	}
	if head.Version != modelVersion {
		return nil, fault.Newf(fault.BadInput, "load the model", dir, "version %d, this program reads %d", head.Version, modelVersion)
	}
	var m interface {
		Model
		load(dir string, raw []byte) error
		preparation() *input.Prepared
	}
	switch head.Job {
	case "logistic", "svm", "linear", "ridge", "lasso", "elasticnet":
		m = &LinearModel{}
	case "kmeans":
		m = &KMeansModel{}
	case "als":
		m = &FactorModel{}
	case "softmax":
		m = &SoftmaxModel{}
	case "mlp":
		m = &NetworkModel{}
	default:
		if _, err := ParseLoss(string(head.Loss)); err != nil {
			return nil, unknownModel(dir, head.Job)
		}
		m = &LinearModel{}
	}
	if err := m.load(dir, raw); err != nil {
		return nil, loadError(dir, err)
	}
	if p := m.preparation(); p != nil {
		if err := p.Check(); err != nil {
			return nil, loadError(dir, err)
		}
	}
	return m, nil
}

// loadNumbers reads a model's numbers, n of them, all finite.
func loadNumbers(dir string, n int) ([]float64, error) {
	if n < 0 || n > 1<<40 {
		return nil, fault.Newf(fault.Corrupt, "read", "model.json", "a model cannot have %d numbers", n)
	}
	v, err := decodeWeights(filepath.Join(dir, "weights.arrow"), n)
	if err != nil {
		return nil, err
	}
	for j, w := range v {
		if !num.Finite(w) {
			return nil, fault.Newf(fault.Corrupt, "read", "weights.arrow", "number %d is %v", j, w)
		}
	}
	return v, nil
}

func loadError(dir string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fault.New(fault.BadInput, "load the model", dir, err)
}

func decodeWeights(path string, features int) (w []float64, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fault.Newf(fault.Corrupt, "read", "weights.arrow", "%v", r)
		}
	}()
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(raw) < 8*features {
		return nil, fault.Newf(fault.Corrupt, "read", "weights.arrow", "it is too short for %d weights", features)
	}
	r, err := ipc.NewFileReader(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for i := range r.NumRecords() {
		rec, err := r.Record(i)
		if err != nil {
			return nil, err
		}
		col, ok := rec.Column(0).(*array.Float64)
		if !ok {
			return nil, fault.Newf(fault.Corrupt, "read", "weights.arrow", "its column is %v", rec.Column(0).DataType())
		}
		w = append(w, col.Float64Values()...)
	}
	if len(w) != features {
		return nil, fault.Newf(fault.Corrupt, "read", "weights.arrow", "it has %d weights, want %d", len(w), features)
	}
	return w, nil
}
