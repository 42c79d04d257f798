package rdd

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/storage/shuffle"
)

// A shuffle of M map tasks and P partitions has M·P pieces. What the session keeps, and
// what a task is told, must not be a record of produce: sums by partition, and where the M
// outputs are, encoded once for all tasks that read them.

// byteCounts are how many bytes of each partition a map task has made.
type byteCounts []int64

// MarshalBinary writes uvarints.
func (c byteCounts) MarshalBinary() ([]byte, error) {
	out := make([]byte, 0, 2*len(c)+binary.MaxVarintLen64)
	out = binary.AppendUvarint(out, uint64(len(c)))
	for _, n := range c {
		out = binary.AppendUvarint(out, uint64(n))
	}
	return out, nil
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (c *byteCounts) UnmarshalBinary(raw []byte) error {
	v, err := uvarints(raw)
	if err != nil || len(v) == 0 || v[0] != int64(len(v)-1) {
		return errCounts
	}
	*c = v[1:]
	return nil
}

var errCounts = fmt.Errorf("the counts of a shuffle are cut short")

// uvarints reads numbers to the end.
func uvarints(raw []byte) ([]int64, error) {
	out := make([]int64, 0, len(raw))
	for len(raw) > 0 {
		v, n := binary.Uvarint(raw)
		if n <= 0 || v > 1<<62 {
			return nil, errCounts
		}
		out, raw = append(out, int64(v)), raw[n:]
	}
	return out, nil
}

// outputSums are how much of each partition all outputs of a shuffle have together. An
// output that is made again has the same rows, and is not counted again.
type outputSums struct {
	bytes []int64
	rows  []float64 // about how many
	noted []bool    // by map task
}

// note takes in what a map task has made.
func (s *outputSums) note(m int, o *mapOutput) {
	if s.noted[m] {
		return
	}
	s.noted[m] = true
	if missing := len(o.Raw) - len(s.bytes); missing > 0 {
		s.bytes, s.rows = append(s.bytes, make([]int64, missing)...), append(s.rows, make([]float64, missing)...)
	}
	each := float64(o.Rows) / float64(max(1, sumOf(o.Raw)))
	for p, n := range o.Raw {
		s.bytes[p] += n
		s.rows[p] += each * float64(n)
	}
}

// of returns the sums over a span of partitions.
func (s *outputSums) of(span shuffle.Span) (bytes, rows int64) {
	var about float64
	for p := span.From; p < min(span.Through, len(s.bytes)); p++ {
		bytes, about = bytes+s.bytes[p], about+s.rows[p]
	}
	return bytes, int64(about)
}

// noteOutput takes an output in. Of the bytes by partition the sums remain, but where
// rows are sorted, or each task reads an output of its own.
func (s *Session) noteOutput(id, m int, o *mapOutput) {
	if d := s.g.node(id).shuffle; !d.narrow && d.bounds == nil {
		s.sums[id].note(m, o)
		o.Raw = nil
	}
	s.shuffled[id][m] = o
}

// shuffledBy returns what map tasks have made together.
func shuffledBy(node int, outputs []*mapOutput) plan.Shuffled {
	s := plan.Shuffled{Node: node, Tasks: len(outputs)}
	var hot int64
	for _, o := range outputs {
		s.Rows += o.Rows
		if missing := len(o.Raw) - len(s.Bytes); missing > 0 {
			s.Bytes = append(s.Bytes, make([]int64, missing)...)
		}
		for p, n := range o.Raw {
			s.Bytes[p] += n
		}
		if o.Hot.Rows > hot && o.Hot.All > 0 {
			hot, s.HotKey, s.HotShare = o.Hot.Rows, o.Hot.Key, float64(o.Hot.Rows)/float64(o.Hot.All)
		}
	}
	return s
}

// outputRefs say where outputs are, one after the other.
type outputRefs struct {
	First   int      // map task of the first
	Holders []string // of some, each once
	Of      []byte   // by output: the number of its holder, from 1; 0 is none
	Runs    []outputRun
	Paths   []string `cbor:",omitempty"` // by output, where they are files
}

// outputRun is some outputs that the same node has written in the same attempt.
type outputRun struct {
	_       struct{} `cbor:",toarray"`
	N, Node int
	Attempt uint64
}

// refsOf describes outputs of a shuffle from a map task on, and who holds them.
func (s *Session) refsOf(id, first int, outputs []*mapOutput, holdersOf func(i int) ([]string, bool)) (outputRefs,
	error) {
	r := outputRefs{First: first}
	number := map[string]int{}
	for i, o := range outputs {
		holders, there := holdersOf(i)
		if !there {
			return r, fault.Newf(fault.Internal, "read", s.g.name(id), "map task %d has not run", first+i)
		}
		node := id
		if o.Of > 0 {
			node = o.Of - 1
		}
		if last := len(r.Runs) - 1; last >= 0 && r.Runs[last].Node == node && r.Runs[last].Attempt == o.Attempt {
			r.Runs[last].N++
		} else {
			r.Runs = append(r.Runs, outputRun{N: 1, Node: node, Attempt: o.Attempt})
		}
		if o.Path != "" {
			r.Paths = append(r.Paths, o.Path)
		}
		k := 0
		if len(holders) > 0 {
			if k = number[holders[0]]; k == 0 {
				r.Holders = append(r.Holders, holders[0])
				k = len(r.Holders)
				number[holders[0]] = k
			}
		}
		r.Of = binary.AppendUvarint(r.Of, uint64(k))
	}
	return r, nil
}

// refs returns what a task reads of each output: the same span, or what spans says.
func (a *shuffleArgs) refs() ([]outputRef, error) {
	var outs outputRefs
	if err := cborReading.Unmarshal(a.Outputs, &outs); err != nil {
		return nil, err
	}
	of, err := uvarints(outs.Of)
	spans, err2 := uvarints(a.Spans)
	if err = cmp.Or(err, err2); err != nil || len(spans) > 0 && len(spans) != 2*len(of) || len(outs.Paths) > 0 &&
		len(outs.Paths) != len(of) {
		return nil, cmp.Or(err, errCounts)
	}
	out := make([]outputRef, 0, len(of))
	run, left := -1, 0
	for i, k := range of {
		for left == 0 {
			if run++; run >= len(outs.Runs) {
				return nil, errCounts
			}
			left = outs.Runs[run].N
		}
		left--
		ref := outputRef{Node: outs.Runs[run].Node, Map: outs.First + i, Attempt: outs.Runs[run].Attempt, Span: a.Span}
		if len(spans) > 0 {
			ref.Span = shuffle.Span{From: int(spans[2*i]), Through: int(spans[2*i] + spans[2*i+1])}
		}
		if len(outs.Paths) > 0 {
			ref.Path = outs.Paths[i]
		}
		if k > 0 && int(k) <= len(outs.Holders) {
			ref.Holder = outs.Holders[k-1]
		}
		if ref.Span.From < ref.Span.Through {
			out = append(out, ref)
		}
	}
	return out, nil
}

// told is what a request tells all its tasks alike of the shuffles that they read.
type taskInputs struct {
	outputs map[int][]byte   // encoded
	holders map[int][]string // sorted
}

// outputsOf returns where all outputs of a shuffle are.
func (t *taskInputs) outputsOf(s *Session, id int) (raw []byte, holders []string, err error) {
	if raw, known := t.outputs[id]; known {
		return raw, t.holders[id], nil
	}
	refs, err := s.refsOf(id, 0, s.shuffled[id], func(i int) ([]string, bool) { return s.stages.Holders(id, i) })
	if err != nil {
		return nil, nil, err
	}
	if raw, err = cborMode.Marshal(refs); err != nil {
		return nil, nil, fault.New(fault.Internal, "encode", "a task's arguments", err)
	}
	if len(refs.Paths) == 0 {
		holders = slices.Sorted(slices.Values(refs.Holders))
	}
	t.outputs[id], t.holders[id] = raw, holders
	return raw, holders, nil
}

// shuffleArgs say where a task finds a partition of a shuffle, and who holds it.
func (s *Session) shuffleArgs(id, part int, t *taskInputs) (a shuffleArgs, holders []string, err error) {
	d := s.g.node(id).shuffle
	if d.narrow {
		return s.narrowArgs(id, part)
	}
	if a.Outputs, holders, err = t.outputsOf(s, id); err != nil || d.bounds == nil {
		a.Span = s.g.spanOf(id, part)
		a.Bytes, a.Rows = s.sums[id].of(a.Span)
		return a, holders, err
	}
	if a.Bounds, err = d.limits(s.bounds[id], part); err != nil {
		return a, nil, err
	}
	for m, o := range s.shuffled[id] {
		span := shuffle.Span{}
		if cuts := s.cuts[id][m]; part < len(cuts) {
			span = shuffle.Span{From: int(cuts[part][0]), Through: int(cuts[part][1])}
		}
		a.Spans = binary.AppendUvarint(binary.AppendUvarint(a.Spans, uint64(span.From)),
			uint64(max(0, span.Through-span.From)))
		a.Bytes, a.Rows = a.addPart(o, span)
	}
	return a, holders, nil
}

// addPart adds a part of an output of sorted rows.
func (a *shuffleArgs) addPart(o *mapOutput, span shuffle.Span) (bytes, rows int64) {
	if span.From >= span.Through {
		return a.Bytes, a.Rows
	}
	n, all := sumOf(o.Raw[span.From:span.Through]), sumOf(o.Raw)
	return a.Bytes + n, a.Rows + int64(float64(o.Rows)*float64(n)/float64(max(1, all)))
}

// narrowArgs returns those of a task that reads the output of the map task of its own
// number.
func (s *Session) narrowArgs(id, part int) (a shuffleArgs, holders []string, err error) {
	o := s.shuffled[id][part]
	refs, err := s.refsOf(id, part, []*mapOutput{o}, func(int) ([]string, bool) { return s.stages.Holders(id, part) })
	if err != nil {
		return a, nil, err
	}
	a.Span = shuffle.Span{From: 0, Through: 1}
	a.Bytes, a.Rows = sumOf(o.Raw), o.Rows
	if a.Outputs, err = cborMode.Marshal(refs); err != nil {
		return a, nil, fault.New(fault.Internal, "encode", "a task's arguments", err)
	}
	if len(refs.Paths) == 0 {
		holders = refs.Holders
	}
	return a, holders, nil
}

func sumOf(numbers []int64) (sum int64) {
	for _, n := range numbers {
		sum += n
	}
	return sum
}

// decisions are what has been decided, by node.
type decisions map[int][]int

// MarshalBinary writes each node, how many numbers it has, and their differences.
func (d decisions) MarshalBinary() (out []byte, err error) {
	for _, node := range slices.Sorted(maps.Keys(d)) {
		out = binary.AppendUvarint(binary.AppendUvarint(out, uint64(node)), uint64(len(d[node])))
		last := 0
		for _, v := range d[node] {
			out = binary.AppendVarint(out, int64(v-last))
			last = v
		}
	}
	return out, nil
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (d *decisions) UnmarshalBinary(raw []byte) error {
	*d = decisions{}
	for len(raw) > 0 {
		node, a := binary.Uvarint(raw)
		if a <= 0 {
			return errCounts
		}
		n, b := binary.Uvarint(raw[a:])
		if raw = raw[a+max(0, b):]; b <= 0 || n > uint64(len(raw)) {
			return errCounts
		}
		list, last := make([]int, n), 0
		for i := range list {
			v, k := binary.Varint(raw)
			if k <= 0 {
				return errCounts
			}
			last += int(v)
			list[i], raw = last, raw[k:]
		}
		(*d)[int(node)] = list
	}
	return nil
}
