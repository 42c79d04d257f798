package rows

import (
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

var (
	negativeZero = math.Copysign(0, -1)
	notANumber   = math.NaN()
	otherNaN     = math.Float64frombits(0xfff8_0000_0000_00aa)
)

// The types of keys.
type (
	spot  struct{ X, Y float64 }
	route struct {
		From, To spot
		Name     string
	}
	event struct {
		At   time.Time
		Size float32
	}
	leftOut struct {
		A int
		B int `json:"-" cbor:"-"`
	}
)

// floats are the numbers whose equality is not that of their bits.
var floats = []float64{0, negativeZero, 1, -1, notANumber, otherNaN, -notANumber, math.Inf(1), math.Inf(-1),
	math.SmallestNonzeroFloat64, 1e300}

// moments are instants, most of them in several zones.
func moments() (all []time.Time) {
	at := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	for i := range 4 {
		for _, zone := range []*time.Location{time.UTC, time.FixedZone("east", 3600), time.FixedZone("", -7*3600),
			time.FixedZone("UTC", 0)} {
			all = append(all, at.Add(time.Duration(i)*time.Hour).In(zone))
		}
	}
	now := time.Now()
	return append(all, time.Time{}, time.Time{}.In(time.FixedZone("odd", 61)), now, now.Round(0),
		time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC))
}

func spots() (all []spot) {
	for _, x := range floats[:6] {
		for _, y := range floats[:6] {
			all = append(all, spot{x, y})
		}
	}
	return all
}

func TestKeysOfNumbersHoldTheLaw(t *testing.T) {
	keysHoldMostly(t, false, true)
	keysHoldMostly[uint64](t, 0, 1, math.MaxUint64)
	keysHold(t, floats...)
	keysHoldMostly[complex128](t, 0, complex(negativeZero, 0), complex(0, negativeZero), complex(notANumber, 1),
		complex(otherNaN, 1), complex(1, notANumber))
}

func TestKeysOfTextHoldTheLaw(t *testing.T) {
	keysHold(t, "", "a", "a\x00", "\xff", strings.Repeat("b", 40), strings.Repeat("b", 41))
}

func TestKeysOfTimesHoldTheLaw(t *testing.T) {
	keysHold(t, moments()...)
}

func TestKeysOfStructsHoldTheLaw(t *testing.T) {
	var routes []route
	var events []event
	for i, p := range spots() {
		routes = append(routes, route{p, spot{negativeZero, float64(i % 2)}, "a"},
			route{p, spot{0, float64(i % 2)}, "a"})
		events = append(events, event{moments()[i%16], float32(p.Y)})
	}
	keysHoldMostly(t, routes...)
	keysHoldMostly(t, events...)
	keysHoldMostly(t, leftOut{1, 2}, leftOut{1, 3}, leftOut{2, 2})
}

func TestKeysOfArraysHoldTheLaw(t *testing.T) {
	keysHoldMostly(t, [2]string{"a", "bc"}, [2]string{"ab", "c"}, [2]string{"", "abc"})
	keysHoldMostly(t, uuid.UUID{1}, uuid.UUID{2})
}

// TestOtherKeysHoldTheLawOrAreRefused: pointers and channels are equal where they are
// the same, which no other process can say.
func TestOtherKeysHoldTheLawOrAreRefused(t *testing.T) {
	one, alike := 1, 1
	keysHoldMostly(t, &one, &alike, nil)
	keysHoldMostly[any](t, 1, int64(1), "a", nil, negativeZero, 0.0)
	keysHoldMostly(t, netip.MustParseAddr("1.2.3.4"), netip.MustParseAddr("::ffff:1.2.3.4"),
		netip.MustParseAddr("fe80::1%eth0"), netip.MustParseAddr("fe80::1"), netip.Addr{})
}
