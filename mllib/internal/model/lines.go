package model

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/volley-engine/volley/internal/fault"
)

// Lines are the predictions of a part's rows, a line of CSV each.
type Lines struct {
	Rows int64
	Text []byte
}

// Put writes the lines and adds their number to n.
func (l *Lines) Put(w io.Writer, n *int64) error {
	*n += l.Rows
	_, err := w.Write(l.Text)
	return err
}

// AppendNumbers appends numbers that end a line, between commas.
func AppendNumbers(out []byte, z ...float64) []byte {
	for k, v := range z {
		if k > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendFloat(out, v, 'g', -1, 64)
	}
	return append(out, '\n')
}

// LabelError returns the error about the label of the n-th row of a part, from 0.
func LabelError(uris []string, n int, format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	return &BadRow{n, func(n int) error {
		return fault.Newf(fault.BadInput, "evaluate", strings.Join(uris, " "), "row %d has %s", n, what)
	}}
}
