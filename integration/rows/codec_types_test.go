package rows

import (
	"context"
	"database/sql"
	"math"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
)

// The types that values are carried of.
type (
	// inner and outermost are nested, and plain.
	inner     struct{ Name, Note string }
	outermost struct {
		N    int
		In   inner
		List []inner
		Next *inner
	}
	// hidden has fields that are not exported, and only such.
	hidden struct{ sum, n int }
	// halfHidden has fields of both kinds.
	halfHidden struct {
		Sum float64
		n   int
	}
	// tagged has tags for other encodings.
	tagged struct {
		Kept   int       `json:"kept"`
		Left   int       `json:"-"`
		Bin    int       `cbor:"-"`
		Empty  []int     `json:",omitempty"`
		Signed float64   `json:"signed,omitempty"`
		One    int       `cbor:"same"`
		Two    int       `cbor:"same"`
		Text   int       `json:",string"`
		At     time.Time `json:"at,omitzero"`
	}
	base1 struct{ X, Y int }
	base2 struct{ X, Z int }
	// clashing embeds two structs that have a field of one name.
	clashing struct {
		base1
		base2
		W int
	}
	// stamped has the methods of a time that is but a part of it.
	stamped struct {
		time.Time
		Name string
	}
	chosen struct {
		Word worded
		List []worded
		By   map[string]worded
		At   *worded
	}
	anything struct{ V any }
	tree     struct {
		V           int
		Left, Right *tree
	}
)

// carriesEveryWay has values of a type, alone and within others, go every way: they come
// back as they were, or the plan refuses the way by the type's name. It is for types that
// stand for others: a compiler takes a second for each.
func carriesEveryWay[T any](t *testing.T, values ...T) {
	goEach(t, longWaysOf[T](), values)
	carries(t, values...)
}

// carries is carriesEveryWay with two of the ways.
func carries[T any](t *testing.T, values ...T) {
	carriesAlone(t, values...)
	t.Run("held "+reflect.TypeFor[T]().String(), func(t *testing.T) {
		goEach(t, shortWaysOf[holder[T]](), held(values))
		t.Run("state", func(t *testing.T) { goesOn(t, held(values)) })
	})
}

// carriesAlone is carries without values within others.
func carriesAlone[T any](t *testing.T, values ...T) {
	t.Run(reflect.TypeFor[T]().String(), func(t *testing.T) {
		goEach(t, shortWaysOf[T](), values)
		t.Run("state", func(t *testing.T) { goesOn(t, values[len(values)-1]) })
	})
}

func goEach[T any](t *testing.T, ways []way[T], values []T) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			if !refused[T](t, func(g *rdd.Graph) { w.declare(g, values, &sightings[T]{}) }) {
				arrive(t, w, values)
			}
		})
	}
}

// goesOn commits a loop's state and resumes from it. A loop does not begin whose state
// cannot be kept.
func goesOn[T any](t *testing.T, want T) {
	cfg := testConfig(t)
	cfg.Checkpoints = t.TempDir()
	turns, err := loopFrom(t, cfg, 1, func(state *T) { *state = want })
	if err != nil {
		if namesType[T](t, err); turns > 0 {
			t.Errorf("a turn was run before the state was refused: %v", firstLine(err))
		}
		return
	}
	cfg.Resume = true
	turns, err = loopFrom(t, cfg, 2, func(state *T) {
		if !sameValue(*state, want) {
			t.Errorf("%s goes on as %s", shown(want), shown(*state))
		}
	})
	if err != nil || turns != 1 {
		t.Errorf("resumed for %d turns: %v", turns, err)
	}
}

// loopFrom runs a loop of n turns, or what is left of them.
func loopFrom[T any](t *testing.T, cfg volley.Config, n int, turn func(*T)) (turns int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err = volley.Run(ctx, cfg, "loop", struct{}{}, func(*rdd.Graph, struct{}) int { return 0 },
		func(ctx context.Context, s *rdd.Session, _ struct{}, _ int) (string, error) {
			var state T
			for range rdd.Iterations(ctx, s, &state, n) {
				turns++
				turn(&state)
			}
			return "end", s.Err()
		})
	return turns, err
}

var zones = []time.Time{time.Date(2024, 5, 1, 12, 0, 0, 123456789, time.UTC),
	time.Date(2024, 5, 1, 13, 0, 0, 123456789, time.FixedZone("east", 3600)), {},
	time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(-400, 2, 3, 4, 5, 6, 7, time.FixedZone("odd", 3601)),
	time.Date(12345, 1, 1, 0, 0, 0, 1, time.UTC), time.Now()}

func TestNumbersComeBackOrAreRefused(t *testing.T) {
	carriesAlone(t, false, true)
	carriesAlone[uint64](t, 0, math.MaxUint64)
	carriesAlone[float32](t, 0, float32(math.Copysign(0, -1)), float32(math.NaN()), math.SmallestNonzeroFloat32)
	carriesEveryWay(t, 0, math.Copysign(0, -1), math.NaN(), math.Inf(-1), math.SmallestNonzeroFloat64)
	carriesAlone[time.Duration](t, 0, time.Hour)
}

func TestTextsComeBackOrAreRefused(t *testing.T) {
	carries(t, "", "a", "not UTF-8: \xff\xfe", strings.Repeat("long ", 300))
	carriesAlone(t, []byte(nil), []byte{}, []byte{0, 255})
}

func TestListsComeBackOrAreRefused(t *testing.T) {
	carriesAlone(t, [][]int32{nil, {}, {1, 2}}, nil)
	carriesAlone(t, [2]string{"", "y"})
}

func TestMapsComeBackOrAreRefused(t *testing.T) {
	carriesAlone(t, map[string]int(nil), map[string]int{}, map[string]int{"a": 1, "": 2, "b": 0})
	carriesAlone(t, map[hidden]string{{1, 2}: "a", {2, 1}: "b"})
}

func TestStructsComeBackOrAreRefused(t *testing.T) {
	carriesEveryWay(t, outermost{}, outermost{N: 1, In: inner{"a", "b"}, List: []inner{{}}, Next: &inner{Name: "c"}})
	carriesAlone(t, halfHidden{}, halfHidden{1, 2})
	carriesAlone(t, tagged{}, tagged{1, 2, 3, []int{}, math.Copysign(0, -1), 4, 5, 6, zones[1]})
	carriesAlone(t, clashing{base1{1, 2}, base2{3, 4}, 5})
	carriesAlone(t, rdd.Point{Indices: []int32{3}, Values: []float64{4}, Weight: 5},
		rdd.Point{Label: 1, Indices: []int32{0, 7}, Values: []float64{4, 5}, Weight: 1})
	carriesAlone(t, sql.Null[int32]{}, sql.Null[int32]{V: 3, Valid: true})
}

func TestPointersComeBackOrAreRefused(t *testing.T) {
	carriesAlone(t, (*int)(nil), new(int))
	carriesAlone(t, &tree{V: 1, Left: &tree{V: 2}})
}

func TestTypesThatEncodeThemselvesComeBackOrAreRefused(t *testing.T) {
	carriesAlone(t, chosen{}, chosen{worded{"a"}, []worded{{"b"}, {}}, map[string]worded{"c": {"d"}}, &worded{"e"}})
	carriesAlone(t, zones...)
	carriesAlone(t, stamped{zones[0], "a"}, stamped{zones[1], "b"})
	carriesAlone(t, netip.Addr{}, netip.MustParseAddr("1.2.3.4"), netip.MustParseAddr("fe80::1%eth0"))
	carriesAlone(t, uuid.UUID{}, uuid.UUID{1, 2})
}

// TestWhatNoEncodingHasIsRefused, when the plan is built.
func TestWhatNoEncodingHasIsRefused(t *testing.T) {
	carriesAlone[any](t, 1, "a", nil)
	carriesAlone(t, anything{}, anything{1})
	carriesAlone(t, map[string]any{"a": 1})
	carriesAlone(t, (func())(nil))
}
