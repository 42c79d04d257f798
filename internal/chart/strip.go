package chart

import (
	"fmt"
	"html"
	"strconv"
	"strings"
)

// Strip is a share of each of several things in each of several steps: a column is a step, a row a thing.
type Strip struct {
	Down, Across string // what rows and columns are
	Rows         int
	Columns      []Column
}

// Column is a step.
type Column struct {
	Name   string
	Shares []float64 // by row, in [0, 1]; nil is all of each
	Mark   bool      // above the column
}

// How many cells a strip has at most. Where there are more, a cell is the least share of those that it stands for: what
// was left out is what a reader looks for.
const (
	mostColumns, mostRows = 120, 60
	levels                = 5
)

// cell returns the least share of the rows and columns that a cell stands for.
func (c *Strip) cell(rows, columns, i, k int) float64 {
	least := 1.0
	for col := k * len(c.Columns) / columns; col < (k+1)*len(c.Columns)/columns; col++ {
		for row := i * c.Rows / rows; row < (i+1)*c.Rows/rows; row++ {
			if row < len(c.Columns[col].Shares) {
				least = min(least, c.Columns[col].Shares[row])
			}
		}
	}
	return min(1, max(0, least))
}

func (c *Strip) cells() (rows, columns int) {
	return min(mostRows, c.Rows), min(mostColumns, len(c.Columns))
}

func (c *Strip) size() (int, int) {
	if rows, columns := c.cells(); rows == 0 || columns == 0 {
		return 0, 0
	}
	return width, 18 + c.high() + 40
}

// high returns the height of all cells.
func (c *Strip) high() int {
	rows, _ := c.cells()
	return min(height-20, max(40, 6*rows))
}

// draw has darker cells where more of a thing was taken; of none there is a hollow square.
func (c *Strip) draw(b *strings.Builder) {
	rows, columns := c.cells()
	w, h := float64(width-margin-8)/float64(columns), float64(c.high())/float64(rows)
	paths := make([]strings.Builder, levels+1) // by level; the last is of none
	for i := range rows {
		for k := 0; k < columns; {
			level, from := levelOf(c.cell(rows, columns, i, k)), k
			for k++; k < columns && levelOf(c.cell(rows, columns, i, k)) == level; k++ {
				if level == levels {
					break // each hollow one by itself
				}
			}
			fmt.Fprintf(&paths[level], "M%.1f %.1fh%.1fv%.1fh-%.1fz", margin+float64(w*float64(from)),
				16+float64(h*float64(i)), w*float64(k-from), h, w*float64(k-from))
		}
	}
	for level := range levels {
		if paths[level].Len() > 0 {
			fmt.Fprintf(b, "<path class=\"l%d\" d=\"%s\"/>", level, paths[level].String())
		}
	}
	if paths[levels].Len() > 0 {
		fmt.Fprintf(b, "<path class=\"open s1\" stroke-width=\"1\" d=\"%s\"/>", paths[levels].String())
	}
	c.frame(b, columns, w)
}

// levelOf returns how dark a share is drawn: the last shade is of all, and levels of none.
func levelOf(share float64) int {
	switch {
	case share <= 0:
		return levels
	case share >= 1:
		return levels - 1
	}
	return int(share * (levels - 1))
}

// levelName returns what a shade means.
func levelName(level int) string {
	switch level {
	case levels:
		return "none"
	case levels - 1:
		return "all"
	}
	return fmt.Sprintf("< %d %%", (level+1)*100/(levels-1))
}

// frame writes marks, the axes and what the cells mean.
func (c *Strip) frame(b *strings.Builder, columns int, w float64) {
	for k := range columns {
		for _, col := range c.Columns[k*len(c.Columns)/columns : (k+1)*len(c.Columns)/columns] {
			if col.Mark {
				fmt.Fprintf(b, "<text x=\"%.1f\" y=\"12\" "+
					"text-anchor=\"middle\">▾</text>", margin+float64(w*(float64(k)+0.5)))
				break
			}
		}
	}
	high := c.high()
	fmt.Fprintf(b, "<rect class=\"frame\" x=\"%d\" y=\"16\" width=\"%d\" height=\"%d\"/>", margin, width-margin-8, high)
	fmt.Fprintf(b, "<text class=\"axis\" x=\"%d\" y=\"26\" text-anchor=\"end\">%s 0</text>", margin-4, c.Down)
	fmt.Fprintf(b, "<text class=\"axis\" x=\"%d\" y=\"%d\" text-anchor=\"end\">%d</text>", margin-4, 14+high, c.Rows-1)
	last := len(c.Columns) - 1
	fmt.Fprintf(b, "<text class=\"axis\" x=\"%d\" y=\"%d\">%s %s</text>", margin, 30+high, c.Across, c.Columns[0].Name)
	fmt.Fprintf(b, "<text class=\"axis\" x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>", width-8, 30+high,
		c.Columns[last].Name)
	for level := range levels + 1 {
		class, x, y := fmt.Sprintf("l%d", level), margin+76*(level+1), 38+high
		if level == levels {
			class, x = "open s1", margin
		}
		fmt.Fprintf(b, "<rect class=\"%s\" stroke-width=\"1\" x=\"%d\" y=\"%d\" width=\"12\" height=\"12\"/>"+
			"<text x=\"%d\" y=\"%d\">%s</text>", class, x, y, x+16, y+11, html.EscapeString(levelName(level)))
	}
}

func (c *Strip) words() string {
	whole, none, cells := 0, 0, 0
	for _, col := range c.Columns {
		if col.Shares == nil {
			cells, whole = cells+c.Rows, whole+c.Rows
		}
		for _, s := range col.Shares {
			cells++
			if s >= 1 {
				whole++
			} else if s <= 0 {
				none++
			}
		}
	}
	return fmt.Sprintf("%d %ss in %d %ss: %d of %d were taken as a whole, %d not at all", c.Rows, c.Down,
		len(c.Columns), c.Across, whole, cells, none)
}

func (c *Strip) table() (header []string, rows [][]string) {
	for _, col := range c.Columns {
		for i, s := range col.Shares {
			rows = append(rows, []string{col.Name, strconv.Itoa(i), exact(s), strconv.FormatBool(col.Mark)})
		}
	}
	return []string{c.Across, c.Down, "share", "marked"}, rows
}
