package rows

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/google/uuid"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/rdd"
)

// The types that values are carried of.
type (
	celsius  float64
	label    string
	colour   int8
	vector   []float64
	switches map[string]bool
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
	// deepHidden has them further down.
	deepHidden struct{ All []halfHidden }
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
	listed struct {
		_    struct{} `cbor:",toarray"`
		A, B int
	}
	base1 struct{ X, Y int }
	base2 struct{ X, Z int }
	// clashing embeds two structs that have a field of one name.
	clashing struct {
		base1
		base2
		W int
	}
	// Base and embedding are exported.
	Base      struct{ X, Y int }
	embedding struct {
		Base
		*inner
		X int
	}
	// stamped has the methods of a time that is but a part of it.
	stamped struct {
		time.Time
		Name string
	}
	// addressed has those of an address.
	addressed struct {
		netip.Addr
		Port int
	}
	cased  struct{ Ab, AB, AbC int }
	chosen struct {
		Word worded
		List []worded
		By   map[string]worded
		At   *worded
	}
	pointed[T any] struct{ P, Q *T }
	anything       struct{ V any }
	tree           struct {
		V           int
		Left, Right *tree
	}
	forest struct{ Trees []forest }
	nobody struct{}
)

// String is not what a colour is.
func (c colour) String() string { return "some colour" }

// shy writes itself as text only, and less than it is.
type shy struct{ Word, Secret string }

// MarshalText leaves something out.
func (s shy) MarshalText() ([]byte, error) { return []byte(s.Word), nil }

// UnmarshalText reads the rest.
func (s *shy) UnmarshalText(raw []byte) error { s.Word = string(raw); return nil }

// MarshalJSON leaves something out, too.
func (s shy) MarshalJSON() ([]byte, error) { return json.Marshal(s.Word) }

// MarshalCBOR leaves everything out.
func (s shy) MarshalCBOR() ([]byte, error) { return []byte{0xf6}, nil }

// point3 writes itself, by value.
type point3 struct{ x, y, z float32 }

// MarshalBinary writes the numbers as text.
func (p point3) MarshalBinary() ([]byte, error) {
	return fmt.Appendf(nil, "%g %g %g", p.x, p.y, p.z), nil
}

// UnmarshalBinary reads them.
func (p *point3) UnmarshalBinary(raw []byte) error {
	_, err := fmt.Sscan(string(raw), &p.x, &p.y, &p.z)
	return err
}

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
	carries[int](t, 0, -1, math.MinInt)
	carriesAlone[int8](t, 0, -128)
	carriesAlone[uint16](t, 0, 65535)
	carriesAlone[int32](t, 0, math.MinInt32)
	carriesAlone[uint64](t, 0, math.MaxUint64)
	carriesAlone[float32](t, 0, float32(math.Copysign(0, -1)), float32(math.NaN()), math.SmallestNonzeroFloat32)
	carriesEveryWay(t, 0, math.Copysign(0, -1), math.NaN(), math.Inf(-1), math.SmallestNonzeroFloat64)
	carries[complex128](t, 0, complex(1, math.NaN()), complex(math.Copysign(0, -1), 2))
	carriesAlone[complex64](t, 1i)
	carries[celsius](t, 0, 36.6, celsius(math.Copysign(0, -1)))
	carriesAlone[colour](t, 0, -3)
	carriesAlone[time.Duration](t, 0, time.Hour)
	carriesAlone[uintptr](t, 7)
}

func TestTextsComeBackOrAreRefused(t *testing.T) {
	carries(t, "", "a", "not UTF-8: \xff\xfe", strings.Repeat("long ", 300))
	carriesAlone[label](t, "", "b\x00")
	carriesEveryWay(t, []byte(nil), []byte{}, []byte{0, 255})
	carriesAlone(t, []rune(nil), []rune("ré"))
	carriesAlone[json.RawMessage](t, nil, json.RawMessage(`{"a":1}`))
	carriesAlone[json.Number](t, "", "1e9")
	carriesAlone(t, net.IP(nil), net.IPv4(1, 2, 3, 4))
}

func TestListsComeBackOrAreRefused(t *testing.T) {
	carries(t, []float64(nil), []float64{}, []float64{1, math.Copysign(0, -1), math.NaN()})
	carriesAlone(t, vector(nil), vector{}, vector{3})
	carries(t, []string(nil), []string{}, []string{"", "x"})
	carriesEveryWay(t, [][]int32{nil, {}, {1, 2}}, nil)
	carriesAlone(t, []*int{nil, new(int)})
	carriesAlone(t, [3]int16{1, 2, 3})
	carriesAlone(t, [2]string{"", "y"})
	carriesAlone(t, [0]int{}, [0]int{})
	carriesAlone(t, []nobody{}, nil, make([]nobody, 3))
	carries(t, nobody{}, nobody{})
}

func TestMapsComeBackOrAreRefused(t *testing.T) {
	carries(t, map[string]int(nil), map[string]int{}, map[string]int{"a": 1, "": 2, "b": 0})
	carriesAlone(t, switches(nil), switches{"on": true})
	carries(t, map[string]struct{}{"a": {}, "b": {}})
	carries(t, map[int][]string{1: nil, 2: {}, 3: {"x"}})
	carries(t, map[[2]int16]map[string]float64{{1, 2}: {"a": 1}, {}: nil})
	carriesAlone(t, map[inner]*inner{{Name: "a"}: {Note: "b"}, {}: nil})
	carriesEveryWay(t, map[hidden]string{{1, 2}: "a", {2, 1}: "b"})
	carries(t, map[float64]int{1: 1, math.NaN(): 2})
	carriesAlone(t, map[uint64]bool{math.MaxUint64: true})
}

func TestStructsComeBackOrAreRefused(t *testing.T) {
	carriesEveryWay(t, outermost{}, outermost{N: 1, In: inner{"a", "b"}, List: []inner{{}}, Next: &inner{Name: "c"}})
	carriesEveryWay(t, hidden{}, hidden{1, 2})
	carries(t, halfHidden{}, halfHidden{1, 2})
	carriesEveryWay(t, deepHidden{}, deepHidden{[]halfHidden{{1, 2}}})
	carriesEveryWay(t, tagged{}, tagged{1, 2, 3, []int{}, math.Copysign(0, -1), 4, 5, 6, zones[1]})
	carriesAlone(t, listed{A: 1, B: 2})
	carries(t, clashing{base1{1, 2}, base2{3, 4}, 5})
	carries(t, embedding{}, embedding{Base{1, 2}, &inner{"a", "b"}, 3})
	carriesAlone(t, cased{1, 2, 3})
	carriesAlone(t, pointed[string]{}, pointed[string]{P: new(string)}, pointed[string]{new(string), new(string)})
	carriesAlone(t, struct{ A, b int }{1, 2})
	carriesAlone(t, rdd.Pair[string, []int]{Key: "a"}, rdd.Pair[string, []int]{Key: "b", Value: []int{1}})
	carriesAlone(t, rdd.Joined[int, *string]{Left: 1}, rdd.Joined[int, *string]{Left: 2, Right: new(string)})
	carries(t, rdd.Point{Label: 1, Values: []float64{2}}, rdd.Point{Values: []float64{math.Copysign(0, -1)}})
	carriesEveryWay(t, rdd.Point{Indices: []int32{3}, Values: []float64{4}, Weight: 5},
		rdd.Point{Label: 1, Indices: []int32{0, 7}, Values: []float64{4, 5}, Weight: 1})
	carriesAlone(t, sql.Null[int32]{}, sql.Null[int32]{V: 3, Valid: true})
}

func TestPointersComeBackOrAreRefused(t *testing.T) {
	carriesEveryWay(t, (*int)(nil), new(int))
	p := new(string)
	carries(t, (**string)(nil), new(*string), &p)
	carriesAlone(t, (*inner)(nil), &inner{"a", "b"})
	carriesAlone(t, &tree{V: 1, Left: &tree{V: 2}})
	carriesAlone(t, forest{[]forest{{}, {[]forest{}}}})
}

func TestTypesThatEncodeThemselvesComeBackOrAreRefused(t *testing.T) {
	carriesEveryWay(t, worded{}, worded{"a"})
	carries(t, (*worded)(nil), &worded{"b"})
	carries(t, chosen{}, chosen{worded{"a"}, []worded{{"b"}, {}}, map[string]worded{"c": {"d"}}, &worded{"e"}})
	carries(t, point3{}, point3{1, 2, 3})
	carriesAlone(t, map[point3]int{{}: 1, {1, 2, 3}: 2})
	carries(t, shy{}, shy{"a", "secret"})
	carriesEveryWay(t, zones...)
	carriesAlone(t, &zones[1])
	carriesEveryWay(t, stamped{zones[0], "a"}, stamped{zones[1], "b"})
	carriesAlone(t, addressed{netip.MustParseAddr("::1"), 80})
	carries(t, netip.Addr{}, netip.MustParseAddr("1.2.3.4"), netip.MustParseAddr("fe80::1%eth0"))
	carriesAlone(t, uuid.UUID{}, uuid.UUID{1, 2})
	carries(t, url.URL{}, url.URL{Scheme: "https", Host: "a.b", Path: "/c", User: url.UserPassword("d", "e")})
	carries(t, *big.NewInt(0), *big.NewInt(-5), *new(big.Int).Lsh(big.NewInt(1), 90))
	carriesAlone(t, (*big.Int)(nil), big.NewInt(7))
	carriesAlone(t, *big.NewRat(1, 3))
}

// TestWhatNoEncodingHasIsRefused, when the plan is built.
func TestWhatNoEncodingHasIsRefused(t *testing.T) {
	carries[any](t, 1, "a", nil)
	carriesAlone[error](t, nil, errors.New("e"))
	carriesAlone[fmt.Stringer](t, nil, colour(1))
	carriesEveryWay(t, anything{}, anything{1})
	carriesAlone(t, []any{1, "a"})
	carriesAlone(t, map[string]any{"a": 1})
	carriesAlone(t, (func())(nil))
	carriesAlone(t, make(chan int))
	carriesAlone(t, unsafe.Pointer(nil))
	carriesAlone(t, struct{ F func() }{})
	carriesAlone(t, new(atomic.Int64))
}
