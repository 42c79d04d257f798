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
	Text []byte
	Ends []int // where each line ends in Text: a label may have line breaks
}

// Put writes the lines and adds their number to n.
func (l *Lines) Put(w io.Writer, n *int64) error {
	*n += int64(len(l.Ends))
	_, err := w.Write(l.Text)
	return err
}

// End adds the numbers that end a line, between commas.
func (l *Lines) End(z ...float64) {
	for k, v := range z {
		if k > 0 {
			l.Text = append(l.Text, ',')
		}
		l.Text = strconv.AppendFloat(l.Text, v, 'g', -1, 64)
	}
	l.Text = append(l.Text, '\n')
	l.Ends = append(l.Ends, len(l.Text))
}

// LabelError returns the error about the label of the n-th row of a part, from 0.
func LabelError(uris []string, n int, format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	return &BadRow{n, func(n int) error {
		return fault.Newf(fault.BadInput, "evaluate", strings.Join(uris, " "), "row %d has %s", n, what)
	}}
}
