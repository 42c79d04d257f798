package history

import (
	"math"
	"slices"
)

// How many differences around a point its standard error is estimated from, and of how many points there is one.
const (
	around     = 8
	leastAbout = 8
)

// robust turns the median of the sizes of normal numbers into their standard deviation.
const robust = 1 / 0.6745

// scatter estimates the standard errors of objectives of steps that ended early, from how they lie about their
// neighbours: third differences of a smooth course nearly vanish, and those of independent errors have 20 times their
// variance (as second ones have 6 times: Gasser, Sroka and Jennen-Steinmetz, 1986). Those of all rows have none.
func scatter(points []Point) []float64 {
	var cut []int
	for i, p := range points {
		if p.Cut {
			cut = append(cut, i)
		}
	}
	if len(cut) < leastAbout {
		return nil
	}
	third := make([]float64, 0, len(cut))
	for k := 3; k < len(cut); k++ {
		y := func(back int) float64 { return points[cut[k-back]].Objective }
		third = append(third, math.Abs(y(0)-3*y(1)+3*y(2)-y(3)))
	}
	errors := make([]float64, len(points))
	for k, i := range cut {
		from := max(0, min(k-1-around/2, len(third)-around))
		some := slices.Sorted(slices.Values(third[from:min(len(third), from+around)]))
		errors[i] = robust * some[len(some)/2] / math.Sqrt(20)
	}
	return errors
}
