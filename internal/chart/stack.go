package chart

import (
	"fmt"
	"html"
	"strconv"
	"strings"
)

// Stack is how several parts make up a whole, in each of several steps.
type Stack struct {
	Across, Up string
	Parts      []string
	Colours    []int       // of each part, as series have; none is those of their order
	Steps      [][]float64 // by step and part
	Last       int         // the number of the last step, where a bar may be several; 0 is their number
}

// mostSteps is how many bars are drawn; of more steps, one is the mean of those that it stands for.
const mostSteps = 100

func (c *Stack) bars() (all [][]float64, most float64) {
	n := min(mostSteps, len(c.Steps))
	for k := range n {
		some := c.Steps[k*len(c.Steps)/n : (k+1)*len(c.Steps)/n]
		bar, sum := make([]float64, len(c.Parts)), 0.0
		for _, step := range some {
			for i, v := range step {
				bar[i] += v / float64(len(some))
				sum += v / float64(len(some))
			}
		}
		all, most = append(all, bar), max(most, sum)
	}
	return all, most
}

func (c *Stack) size() (int, int) {
	if _, most := c.bars(); most == 0 {
		return 0, 0
	}
	return width, height + 18*((len(c.Parts)+1)/2)
}

func (c *Stack) draw(b *strings.Builder) {
	bars, most := c.bars()
	y := scale{0, most, height - 34, top}
	w := float64(width-8-margin) / float64(len(bars))
	for k, bar := range bars {
		sum := 0.0
		for i, v := range bar {
			if v == 0 {
				continue
			}
			from, to := y.at(sum), y.at(sum+v)
			sum += v
			fmt.Fprintf(b, "<rect class=\"s%d fill\" stroke-width=\"0\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "+
				"height=\"%.1f\"/>",
				c.colour(i), margin+float64(w*float64(k)), to, w*0.9, from-to)
		}
	}
	fmt.Fprintf(b, "<rect class=\"frame\" x=\"%d\" y=\"%d\" width=\"%d\" "+
		"height=\"%d\"/>", margin, top, width-8-margin, height-34-top)
	for _, v := range ticks(y, false) {
		fmt.Fprintf(b, "<text class=\"axis\" x=\"%d\" y=\"%.1f\" "+
			"text-anchor=\"end\">%s</text>", margin-4, y.at(v)+4, Number(v))
	}
	fmt.Fprintf(b, "<text class=\"axis\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s 1 to %d</text>", (margin+width)/2,
		height-20, html.EscapeString(c.Across), max(c.Last, len(c.Steps)))
	above(b, c.Up)
	for i, part := range c.Parts {
		x, y := margin+(width-margin)/2*(i%2), height-4+18*(i/2)
		fmt.Fprintf(b, "<rect class=\"bar s%d fill\" x=\"%d\" y=\"%d\" width=\"12\" height=\"12\"/><text x=\"%d\" "+
			"y=\"%d\">%d %s</text>", c.colour(i), x, y, x+16, y+11, i+1, html.EscapeString(part))
	}
}

func (c *Stack) colour(part int) int {
	if len(c.Colours) == 0 {
		return part % 6
	}
	return c.Colours[part]
}

func (c *Stack) words() string {
	sums, all := make([]float64, len(c.Parts)), 0.0
	for _, step := range c.Steps {
		for i, v := range step {
			sums[i], all = sums[i]+v, all+v
		}
	}
	var parts []string
	for i, part := range c.Parts {
		parts = append(parts, fmt.Sprintf("%s %.0f %%", part, 100*sums[i]/max(all, 1e-300)))
	}
	return fmt.Sprintf("%s of %d %ss: %s", c.Up, len(c.Steps), c.Across, strings.Join(parts, ", "))
}

func (c *Stack) table() (header []string, rows [][]string) {
	for k, step := range c.Steps {
		for i, v := range step {
			rows = append(rows, []string{strconv.Itoa(k + 1), c.Parts[i], exact(v)})
		}
	}
	return []string{c.Across, "part", c.Up}, rows
}
