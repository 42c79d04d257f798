//go:build soak

package rows

import (
	"math"
	"testing"
	"time"

	"github.com/volley-engine/volley/rdd"
)

// The types of keys beside those of every test run.
type (
	day struct {
		time.Time
	}
	sparse struct {
		A int8
		B int64
		C bool
	}
	blank struct {
		A int32
		_ int32
		B float32
	}
	private struct {
		a, b int
	}
)

func TestMoreKeysOfNumbersHoldTheLaw(t *testing.T) {
	keysHoldMostly[int](t, 0, 1, -1, math.MinInt, math.MaxInt)
	keysHoldMostly[int8](t, 0, 1, -1, -128)
	keysHoldMostly[int32](t, 0, 1, -1, math.MinInt32)
	var short []float32
	var warm []celsius
	for _, f := range floats {
		short, warm = append(short, float32(f)), append(warm, celsius(f))
	}
	keysHoldMostly(t, short...)
	keysHold(t, warm...)
	keysHoldMostly[time.Duration](t, 0, 1, time.Hour)
}

func TestMoreKeysOfTextHoldTheLaw(t *testing.T) {
	keysHoldMostly[label](t, "", "x", "y")
}

func TestMoreKeysOfTimesHoldTheLaw(t *testing.T) {
	var pairs [][2]time.Time
	var days []day
	for i, at := range moments() {
		pairs, days = append(pairs, [2]time.Time{at, moments()[i/2]}), append(days, day{at})
	}
	keysHoldMostly(t, pairs...)
	keysHoldMostly(t, days...)
}

func TestMoreKeysOfStructsHoldTheLaw(t *testing.T) {
	keysHold(t, spots()...)
	var events []event
	for i, p := range spots() {
		events = append(events, event{moments()[i%16], float32(p.Y)})
	}
	keysHold(t, events...)
	keysHoldMostly(t, sparse{1, 2, true}, sparse{1, 2, false}, sparse{0, 2, true})
	keysHoldMostly(t, blank{A: 1, B: 2}, blank{A: 1, B: float32(negativeZero)}, blank{A: 1})
	keysHoldMostly(t, private{1, 2}, private{2, 1}, private{1, 1})
	keysHoldMostly(t, rdd.Pair[string, float64]{Key: "a"}, rdd.Pair[string, float64]{Key: "a", Value: negativeZero},
		rdd.Pair[string, float64]{Key: "a", Value: notANumber})
	keysHoldMostly(t, nobody{}, nobody{})
}

func TestMoreKeysOfArraysHoldTheLaw(t *testing.T) {
	var triples [][3]float32
	var nested [][1]spot
	for i, p := range spots() {
		triples, nested = append(triples, [3]float32{float32(p.X), float32(i % 2), float32(p.Y)}),
			append(nested, [1]spot{p})
	}
	keysHold(t, triples...)
	keysHoldMostly(t, nested...)
}

func TestMoreOfKeysHoldTheLawOrAreRefused(t *testing.T) {
	one, alike := 1, 1
	keysHoldMostly(t, make(chan int), make(chan int))
	keysHoldMostly(t, struct{ P *int }{&one}, struct{ P *int }{&alike})
	keysHoldMostly(t, point3{1, 2, 3}, point3{1, 2, 4})
}
