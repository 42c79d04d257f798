package model

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/volley-engine/volley/internal/disk"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/input"
	"github.com/volley-engine/volley/storage/input/files"
	"github.com/volley-engine/volley/storage/objects"
)

// Model is what a training job comes to. A saved one is plain data: a directory of
// model.json and weights.arrow, with no time, path or identity in it, nor anything
// of how it was trained.
type Model interface {
	Scorer
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

// Confusing is a model that says which labels it takes for which.
type Confusing interface {
	// Confusion returns how often each label was said of rows of each.
	Confusion(ctx context.Context, in rdd.Input, uris []string) (*Confusion, error)
}

// ProbabilityHeader returns the first line of a file of probabilities.
func ProbabilityHeader(labels []string) string {
	line := "label"
	for _, l := range labels {
		line += "," + CSVField("probability of "+l)
	}
	return line
}

// Version is the version of the directory's layout: since 2 the columns of weights.arrow have names.
const Version = 2

// Head begins every model.json.
type Head struct {
	Version int    `json:"version"`
	Job     string `json:"job"`
}

// unknownModel refuses a model of a kind that this program does not know.
func unknownModel(dir, job string) error {
	return fault.Newf(fault.BadInput, "load the model", dir, "a model of the job %q is not known to this program", job)
}

// Save writes a model whose model.json is head, with its numbers.
func Save(dir string, overwrite bool, head any, numbers *Columns) error {
	if err := CanSave(dir, overwrite); err != nil {
		return err
	}
	if objects.Is(dir) {
		raw, weights, err := encode(head, numbers)
		if err != nil {
			return err
		}
		return PlaceObjects(dir, overwrite, map[string][]byte{headFile: raw, numbersFile: weights})
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
		return notAModel(dir, err)
	}
	return nil
}

// CanSave reports whether a model may be saved to a directory, before there is
// one to save.
func CanSave(dir string, overwrite bool) error {
	if objects.Is(dir) {
		return canSaveObjects(dir, overwrite)
	}
	if _, err := os.Stat(dir); err == nil && !overwrite {
		return existsAlready(dir)
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

// encode returns the files of a model.
func encode(head any, numbers *Columns) (raw, weights []byte, err error) {
	if raw, err = json.MarshalIndent(head, "", "  "); err != nil {
		return nil, nil, err
	}
	if weights, err = numbers.encode(); err != nil {
		return nil, nil, err
	}
	raw = fmt.Appendf(bytes.TrimSuffix(raw, []byte("\n}")), ",\n  \"weights_sha256\": %q\n}\n", digestOf(weights))
	return raw, weights, nil
}

func write(dir string, head any, numbers *Columns) error {
	raw, weights, err := encode(head, numbers)
	if err != nil {
		return err
	}
	if err := disk.WriteSynced(filepath.Join(dir, "model.json"), raw, 0o644); err != nil {
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

// Kind is what a program knows of models of one kind.
type Kind struct {
	Is   func(job, loss string) bool
	Load func(head, numbers []byte) (Model, *input.Prepared, error) // from model.json and what it names
}

// JobIs returns a check that models have the name of one job.
func JobIs(name string) func(job, loss string) bool {
	return func(job, _ string) bool { return job == name }
}

// Load reads a model's directory; it is of the first kind that it can be.
func Load(dir string, kinds []Kind) (Model, error) {
	m, _, err := LoadDigest(dir, kinds)
	return m, err
}

// LoadDigest does what Load does, and returns the digest of what it has read, which is the same wherever the model is.
func LoadDigest(dir string, kinds []Kind) (m Model, digest string, err error) {
	for again := objects.Is(dir); ; again = false {
		raw, err := files.ReadFile(files.Join(dir, headFile))
		if err != nil {
			return nil, "", loadError(dir, err)
		}
		m, err := load(dir, raw, kinds)
		if errors.Is(err, errNoNumbers) && again { // they are replaced just now, with model.json
			continue
		}
		return m, digestOf(raw), err
	}
}

// load reads a model's directory, of which model.json is given.
func load(dir string, raw []byte, kinds []Kind) (Model, error) {
	var head struct {
		Head
		Loss    string `json:"loss"`
		Weights string `json:"weights_sha256"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, loadError(dir, err)
	}
	if head.Version != Version {
		return nil, fault.Newf(fault.BadInput, "load the model", dir, "it is of version %d, this program reads %d",
			head.Version, Version).WithHint("train it again, or read it with the volley that saved it")
	}
	at := slices.IndexFunc(kinds, func(k Kind) bool { return k.Is(head.Job, head.Loss) })
	if at < 0 {
		return nil, unknownModel(dir, head.Job)
	}
	numbers, err := savedNumbers(dir, head.Weights)
	if err != nil {
		return nil, loadError(dir, err)
	}
	m, p, err := kinds[at].Load(raw, numbers)
	if err == nil && p != nil {
		err = p.Check()
	}
	if err != nil {
		return nil, loadError(dir, err)
	}
	return m, nil
}

// digestOf returns the digest of a file's bytes, as model.json has that of weights.arrow.
func digestOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// savedNumbers returns a model's numbers, if they are those that were saved with it.
func savedNumbers(dir, digest string) ([]byte, error) {
	numbers, err := readNumbers(dir, digest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, wrong("%w", errNoNumbers)
	}
	if err == nil && digestOf(numbers) != digest {
		err = wrong("it is damaged, or of another model: model.json has another digest of it")
	}
	return numbers, err
}

var errNoNumbers = errors.New("it is missing")

// LoadAs reads the directory of a model of a kind that has a name.
func LoadAs[M Model](dir, name string, kinds []Kind) (as M, err error) {
	m, err := Load(dir, kinds)
	if err != nil {
		return as, err
	}
	as, ok := m.(M)
	if !ok {
		err = fault.Newf(fault.Usage, "load the model", dir, "it is not a model of %s", name)
	}
	return as, err
}

func loadError(dir string, err error) error {
	var known *fault.Error
	var pe *fs.PathError
	kind := fault.BadInput
	switch is := errors.As(err, &known); {
	case is && objects.Is(dir) && errors.Is(err, fs.ErrNotExist):
		err = errors.New("it has no " + headFile + ", or there is no such bucket")
	case is && objects.Is(dir): // a store that does not answer may do so later
		kind = known.Kind
	case is && known.Op == "open": // of a file: its directory says more
		err = known.Err
	}
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fault.New(kind, "load the model", dir, err)
}
