//go:build soak

package rows

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"net"
	"net/netip"
	"net/url"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/volley-engine/volley/rdd"
)

// The types beside those that every test run carries: a compiler takes seconds for each of them.
type (
	celsius  float64
	label    string
	colour   int8
	vector   []float64
	switches map[string]bool
	// deepHidden has them further down.
	deepHidden struct{ All []halfHidden }
	listed     struct {
		_    struct{} `cbor:",toarray"`
		A, B int
	}
	// Base and embedding are exported.
	Base      struct{ X, Y int }
	embedding struct {
		Base
		*inner
		X int
	}
	// addressed has those of an address.
	addressed struct {
		netip.Addr
		Port int
	}
	pointed[T any] struct{ P, Q *T }
	forest         struct{ Trees []forest }
	nobody         struct{}
	cased          struct{ Ab, AB, AbC int }
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

func TestMoreNumbersComeBackOrAreRefused(t *testing.T) {
	carries[int](t, 0, -1, math.MinInt)
	carriesAlone[int8](t, 0, -128)
	carriesAlone[uint16](t, 0, 65535)
	carriesAlone[int32](t, 0, math.MinInt32)
	carries[complex128](t, 0, complex(1, math.NaN()), complex(math.Copysign(0, -1), 2))
	carriesAlone[complex64](t, 1i)
	carries[celsius](t, 0, 36.6, celsius(math.Copysign(0, -1)))
	carriesAlone[colour](t, 0, -3)
	carriesAlone[uintptr](t, 7)
}

func TestMoreTextsComeBackOrAreRefused(t *testing.T) {
	carriesAlone[label](t, "", "b\x00")
	carriesEveryWay(t, []byte(nil), []byte{}, []byte{0, 255})
	carriesAlone(t, []rune(nil), []rune("ré"))
	carriesAlone[json.RawMessage](t, nil, json.RawMessage(`{"a":1}`))
	carriesAlone[json.Number](t, "", "1e9")
	carriesAlone(t, net.IP(nil), net.IPv4(1, 2, 3, 4))
}

func TestMoreListsComeBackOrAreRefused(t *testing.T) {
	carries(t, []float64(nil), []float64{}, []float64{1, math.Copysign(0, -1), math.NaN()})
	carriesAlone(t, vector(nil), vector{}, vector{3})
	carries(t, []string(nil), []string{}, []string{"", "x"})
	carriesEveryWay(t, [][]int32{nil, {}, {1, 2}}, nil)
	carriesAlone(t, []*int{nil, new(int)})
	carriesAlone(t, [3]int16{1, 2, 3})
	carriesAlone(t, [0]int{}, [0]int{})
	carriesAlone(t, []nobody{}, nil, make([]nobody, 3))
	carries(t, nobody{}, nobody{})
}

func TestMoreMapsComeBackOrAreRefused(t *testing.T) {
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

func TestMoreStructsComeBackOrAreRefused(t *testing.T) {
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
}

func TestMorePointersComeBackOrAreRefused(t *testing.T) {
	carriesEveryWay(t, (*int)(nil), new(int))
	p := new(string)
	carries(t, (**string)(nil), new(*string), &p)
	carriesAlone(t, (*inner)(nil), &inner{"a", "b"})
	carriesAlone(t, forest{[]forest{{}, {[]forest{}}}})
}

func TestMoreThatEncodeThemselvesComeBackOrAreRefused(t *testing.T) {
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
	carries(t, url.URL{}, url.URL{Scheme: "https", Host: "a.b", Path: "/c", User: url.UserPassword("d", "e")})
	carries(t, *big.NewInt(0), *big.NewInt(-5), *new(big.Int).Lsh(big.NewInt(1), 90))
	carriesAlone(t, (*big.Int)(nil), big.NewInt(7))
	carriesAlone(t, *big.NewRat(1, 3))
}

func TestMoreThatNoEncodingHasIsRefused(t *testing.T) {
	carries[any](t, 1, "a", nil)
	carriesAlone[error](t, nil, errors.New("e"))
	carriesAlone[fmt.Stringer](t, nil, colour(1))
	carriesEveryWay(t, anything{}, anything{1})
	carriesAlone(t, []any{1, "a"})
	carriesAlone(t, make(chan int))
	carriesAlone(t, unsafe.Pointer(nil))
	carriesAlone(t, struct{ F func() }{})
	carriesAlone(t, new(atomic.Int64))
}
