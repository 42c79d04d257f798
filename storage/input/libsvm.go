package input

import (
	"bytes"
	"cmp"
	"context"
	"math"

	"github.com/volley-engine/volley/storage/input/files"
	"github.com/volley-engine/volley/storage/input/rows"
	"github.com/volley-engine/volley/storage/input/text"
)

// parseLIBSVM reads `label [qid:N] index:value … [# comment]` lines. Indices
// are kept as they stand; whether they count from 0 or 1 is decided when the
// whole input has been seen.
func parseLIBSVM(blk text.Block, c *rows.Chunk) error {
	p := libsvmParser{blk: blk, b: blk.Data, c: c}
	if c.Offsets == nil {
		c.Offsets = []int64{0}
	}
	if blk.Offset == 0 && bytes.HasPrefix(p.b, []byte(text.ByteOrderMark)) {
		p.i = len(text.ByteOrderMark)
	}
	for p.i < len(p.b) {
		if err := p.line(); err != nil {
			return err
		}
	}
	return nil
}

// readLIBSVM yields the rows of a range, block by block.
func readLIBSVM(ctx context.Context, rng files.Range, yield func(*rows.Chunk) error) error {
	for blk, err := range text.Lines(rng) {
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
		c := &rows.Chunk{}
		if err := parseLIBSVM(blk, c); err != nil {
			return err
		}
		if c.Rows() == 0 {
			continue
		}
		c.Where = blk.Place()
		if err := yield(c); err != nil {
			return err
		}
	}
	return nil
}

type libsvmParser struct {
	blk text.Block
	b   []byte
	i   int
	c   *rows.Chunk
}

// line reads one line, its newline included. Blank lines and comments are not
// rows.
func (p *libsvmParser) line() error {
	p.blanks()
	if p.atEnd() {
		p.skipLine()
		return nil
	}
	if err := p.label(); err != nil {
		return err
	}
	last := int32(-1)
	for p.blanks(); !p.atEnd(); p.blanks() {
		var err error
		if last, err = p.pair(last); err != nil {
			return err
		}
	}
	p.skipLine()
	p.c.Offsets = append(p.c.Offsets, int64(len(p.c.Indices)))
	return nil
}

func (p *libsvmParser) blanks() {
	for p.i < len(p.b) && (p.b[p.i] == ' ' || p.b[p.i] == '\t' || p.b[p.i] == '\r') {
		p.i++
	}
}

// atEnd reports whether the rest of the line holds no more fields.
func (p *libsvmParser) atEnd() bool {
	return p.i >= len(p.b) || p.b[p.i] == '\n' || p.b[p.i] == '#'
}

func (p *libsvmParser) skipLine() {
	for p.i < len(p.b) && p.b[p.i] != '\n' {
		p.i++
	}
	p.i++
}

func (p *libsvmParser) label() error {
	v, end := text.Number(p.b, p.i)
	if end > p.i && p.fieldEnds(end) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return p.blk.Bad(p.i, "the label is %q, not a finite number", p.field())
		}
		if p.c.Texts != nil {
			return p.blk.Bad(p.i, "the label %q is a number, those before it are text", p.field())
		}
		p.c.Labels = append(p.c.Labels, v)
		p.i = end
		return nil
	}
	return p.textLabel()
}

func (p *libsvmParser) textLabel() error {
	f := p.field()
	for _, ch := range f {
		if ch == ':' {
			return p.blk.Bad(p.i, "the line begins with %q where its label should be", f)
		}
	}
	if len(p.c.Labels) > 0 && p.c.Texts == nil {
		return p.blk.Bad(p.i, "the label %q is not a number", f)
	}
	p.c.AddText(f)
	p.i += len(f)
	return nil
}

// pair reads index:value; indices must ascend. qid pairs are skipped.
func (p *libsvmParser) pair(last int32) (int32, error) {
	at, idx := p.i, int64(0)
	for p.i < len(p.b) && p.b[p.i]-'0' <= 9 {
		if idx = idx*10 + int64(p.b[p.i]-'0'); idx > rows.MaxIndex {
			p.i = at
			return 0, p.blk.Bad(at, "the index of %q is larger than %d", p.field(), rows.MaxIndex)
		}
		p.i++
	}
	if p.i == at || p.i >= len(p.b) || p.b[p.i] != ':' {
		return p.notAPair(at, last)
	}
	p.i++
	v, end := text.Number(p.b, p.i)
	if end == p.i || !p.fieldEnds(end) {
		p.i = at
		return 0, p.blk.Bad(at, "the value of %q is not a number", p.field())
	}
	if math.IsNaN(v) || math.IsInf(v, 0) {
		p.i = at
		return 0, p.blk.Bad(at, "the value of %q is not finite", p.field())
	}
	if int32(idx) <= last {
		return 0, p.blk.Bad(at, "index %d comes after index %d: indices must ascend within a line", idx, last)
	}
	p.i = end
	p.c.Indices = append(p.c.Indices, int32(idx))
	p.c.Values = append(p.c.Values, v)
	return int32(idx), nil
}

func (p *libsvmParser) notAPair(at int, last int32) (int32, error) {
	p.i = at
	f := p.field()
	if len(f) > 4 && string(f[:4]) == "qid:" {
		p.i += len(f)
		return last, nil
	}
	return 0, p.blk.Bad(at, "%q is not an index:value pair", f)
}

// field returns the text up to the next blank.
func (p *libsvmParser) field() []byte {
	end := p.i
	for !p.fieldEnds(end) {
		end++
	}
	return p.b[p.i:min(end, p.i+200)]
}

func (p *libsvmParser) fieldEnds(i int) bool {
	return i >= len(p.b) || p.b[i] == ' ' || p.b[i] == '\n' || p.b[i] == '\t' || p.b[i] == '\r'
}
