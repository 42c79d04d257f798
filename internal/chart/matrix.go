package chart

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Matrix is how much there is of something for each of some rows and columns.
type Matrix struct {
	Of           string // what there is, with its unit
	Down, Across string // what rows and columns are
	Rows         []string
	Columns      []string
	Cells        [][]int64 // by row and column
	Text         func(int64) string
}

// How many rows and columns are drawn, those with the most; with how many numbers are written into cells; and how large
// cells are, in pixels.
const (
	mostCells, mostWritten = 32, 6
	cellHigh               = 18
)

// most returns the places of the largest sums, in their order.
func most(sums []int64) []int {
	places := make([]int, len(sums))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(sums[b], sums[a]) })
	places = places[:min(len(places), mostCells)]
	slices.Sort(places)
	return places
}

// shown returns the places of rows and columns that are drawn, and the largest of all cells.
func (c *Matrix) shown() (rows, columns []int, top int64) {
	down, across := make([]int64, len(c.Rows)), make([]int64, len(c.Columns))
	for i, row := range c.Cells {
		for k, v := range row {
			down[i] += min(v, math.MaxInt64-down[i])
			across[k] += min(v, math.MaxInt64-across[k])
			top = max(top, v)
		}
	}
	return most(down), most(across), top
}

func (c *Matrix) size() (int, int) {
	rows, _, top := c.shown()
	if top == 0 {
		return 0, 0
	}
	return width, cellHigh*(len(rows)+1) + 26
}

// draw has darker cells where there is more; where there is nothing they are empty.
func (c *Matrix) draw(b *strings.Builder) {
	rows, columns, top := c.shown()
	w := float64(width-8-nameWidth) / float64(len(columns))
	for k, col := range columns {
		name := ""
		if w >= 60 || k == 0 || k == len(columns)-1 {
			name = short(c.Columns[col])
		}
		fmt.Fprintf(b, "<text class=\"axis\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>",
			nameWidth+float64(w*(float64(k)+0.5)), cellHigh-5, html.EscapeString(name))
	}
	for i, row := range rows {
		y := cellHigh * (i + 1)
		fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>", nameWidth-6, y+cellHigh-5,
			html.EscapeString(short(c.Rows[row])))
		for k, col := range columns {
			c.cell(b, c.Cells[row][col], top, nameWidth+float64(w*float64(k)), y, w, len(columns) <= mostWritten)
		}
	}
	below := cellHigh * (len(rows) + 1)
	fmt.Fprintf(b, "<rect class=\"frame\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>", nameWidth, cellHigh,
		width-8-nameWidth, below-cellHigh)
	fmt.Fprintf(b, "<text class=\"axis\" x=\"%d\" y=\"%d\">rows: %s; columns: %s; the darkest: %s</text>", nameWidth,
		below+18, html.EscapeString(c.Down), html.EscapeString(c.Across), html.EscapeString(c.Text(top)))
}

// cell draws one, with its number where there is room.
func (c *Matrix) cell(b *strings.Builder, v, top int64, x float64, y int, w float64, written bool) {
	if v > 0 {
		fmt.Fprintf(b, "<rect class=\"l%d\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>",
			levelOf(float64(v)/float64(top)), x, y, w, cellHigh)
	}
	if written {
		class := ""
		if v > 0 && levelOf(float64(v)/float64(top)) >= levels/2 {
			class = " class=\"on\""
		}
		fmt.Fprintf(b, "<text%s x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>", class, x+w/2, y+cellHigh-5,
			html.EscapeString(c.Text(v)))
	}
}

func (c *Matrix) words() string {
	all, own, top, where := int64(0), int64(0), int64(-1), ""
	for i, row := range c.Cells {
		for k, v := range row {
			if all += min(v, math.MaxInt64-all); c.Rows[i] == c.Columns[k] {
				own += min(v, math.MaxInt64-own)
			}
			if v > top {
				top, where = v, fmt.Sprintf("%s %s, %s %s", c.Down, c.Rows[i], c.Across, c.Columns[k])
			}
		}
	}
	return fmt.Sprintf("%s in all, %s where row and column are the same, the most %s: %s", c.Text(all), c.Text(own),
		where, c.Text(max(0, top)))
}

func (c *Matrix) table() (header []string, rows [][]string) {
	for i, row := range c.Cells {
		for k, v := range row {
			rows = append(rows, []string{c.Rows[i], c.Columns[k], strconv.FormatInt(v, 10)})
		}
	}
	return []string{c.Down, c.Across, c.Of}, rows
}
