package rdd_test

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/volley-engine/volley/rdd"
)

// sale is a row with keys of several kinds.
type sale struct {
	Shop  string
	At    time.Time
	Paid  bool
	Price float64
	N     int
}

func sales(t *rapid.T, most int) []sale {
	shop := rapid.SampledFrom([]string{"", "a", "aaaaaaaaa", "aaaaaaaab", "b", "ü"})
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) sale {
		return sale{Shop: shop.Draw(t, "shop"), At: time.Unix(rapid.Int64Range(-3, 3).Draw(t, "s"),
			rapid.Int64Range(0, 2).Draw(t, "ns")).UTC(), Paid: rapid.Bool().Draw(t, "paid"),
			Price: rapid.SampledFrom([]float64{-1, 0, 1, 2.5, math.Inf(1)}).Draw(t, "price"),
			N:     rapid.IntRange(0, 9).Draw(t, "n")}
	}), 0, most).Draw(t, "sales")
}

// TestSortsOfSeveralKeys: what OrderBy, SortWithinPartitions and a secondary sort come to is what a stable sort by a
// comparison does, whatever memory and keys there are.
func TestSortsOfSeveralKeys(t *testing.T) {
	keys := map[string]rdd.Order[sale]{
		"shop":      rdd.Asc(func(s sale) string { return s.Shop }),
		"shop down": rdd.Desc(func(s sale) string { return s.Shop }),
		"at":        rdd.Asc(func(s sale) time.Time { return s.At }),
		"paid":      rdd.Desc(func(s sale) bool { return s.Paid }),
		"price":     rdd.Desc(func(s sale) float64 { return s.Price }),
		"n":         rdd.Comparing(func(a, b sale) int { return cmp.Compare(a.N%3, b.N%3) }),
	}
	compare := map[string]func(a, b sale) int{
		"shop": func(a, b sale) int { return strings.Compare(a.Shop, b.Shop) },
		"at":   func(a, b sale) int { return a.At.Compare(b.At) },
		"paid": func(a, b sale) int {
			if a.Paid == b.Paid {
				return 0
			} else if a.Paid {
				return -1
			}
			return 1
		},
		"price": func(a, b sale) int { return cmp.Compare(b.Price, a.Price) },
		"n":     func(a, b sale) int { return cmp.Compare(a.N%3, b.N%3) },
	}
	compare["shop down"] = func(a, b sale) int { return compare["shop"](b, a) }
	rapid.Check(t, func(r *rapid.T) {
		rows := sales(r, 200)
		for range rapid.IntRange(0, 3).Draw(r, "doublings") {
			rows = append(rows, rows...)
		}
		all := slices.Sorted(maps.Keys(keys))
		names := rapid.SliceOfNDistinct(rapid.SampledFrom(all), 1, 4, rapid.ID).Draw(r, "keys")
		var by rdd.Order[sale]
		for _, n := range names {
			by = by.Then(keys[n])
		}
		less := func(a, b sale) int {
			for _, n := range names {
				if c := compare[n](a, b); c != 0 {
					return c
				}
			}
			return 0
		}
		parts := rapid.IntRange(1, 5).Draw(r, "partitions")
		down := rapid.Bool().Draw(r, "descending")
		got, err := theAction(t, func(g *rdd.Graph) rdd.Action[[]sale] {
			var options []rdd.ShuffleOption
			if down {
				options = append(options, rdd.Descending())
			}
			return rdd.Collect(rdd.OrderBy(rdd.Parallelize(g, parts, rows...), by, options...))
		})
		want := slices.Clone(rows)
		slices.SortStableFunc(want, func(a, b sale) int {
			if down {
				return less(b, a)
			}
			return less(a, b)
		})
		if err != nil || !slices.Equal(got, want) {
			r.Fatalf("%v by %v: %v, want %v", err, names, got, want)
		}
		sorted, err := theAction(t, func(g *rdd.Graph) rdd.Action[[][]sale] {
			return rdd.Collect(rdd.Glom(rdd.SortWithinPartitions(rdd.Parallelize(g, parts, rows...), by)))
		})
		for i, part := range sorted {
			want := slices.Clone(rows[i*len(rows)/parts : (i+1)*len(rows)/parts])
			slices.SortStableFunc(want, less)
			if !slices.Equal(part, want) {
				r.Fatalf("partition %d: %v, want %v", i, part, want)
			}
		}
		if err != nil {
			r.Fatal(err)
		}
	})
}

// groups are rows by a key, in the order of the input.
func groups(rows []sale) map[string][]sale {
	out := map[string][]sale{}
	for _, r := range rows {
		out[r.Shop] = append(out[r.Shop], r)
	}
	return out
}

// byPrice is the order of the sales of a shop.
var byPrice = rdd.Desc(func(s sale) float64 { return s.Price }).Then(rdd.Asc(func(s sale) time.Time { return s.At }))

// shops are rows by their shop, each in order.
func shops(rows []sale) map[string][]sale {
	out := groups(rows)
	for _, of := range out {
		slices.SortStableFunc(of, byPrice.Compare)
	}
	return out
}

func byShop(g *rdd.Graph, rows []sale) rdd.Dataset[rdd.Pair[string, sale]] {
	return rdd.KeyBy(rdd.Parallelize(g, 3, rows...), func(s sale) string { return s.Shop })
}

// seen is what a window function has seen.
type seen struct {
	Row                    sale
	Number, Rank, Dense, N int
	Before                 float64
	Three, Tile            int
	Share, Cume            float64
}

func see(w *rdd.Window[sale]) seen {
	before, ok := w.Lag(1)
	if !ok {
		before.Price = -7
	}
	return seen{w.Row(), w.RowNumber(), w.Rank(), w.DenseRank(), w.Size(), before.Price, len(w.Between(-1, 1)),
		w.NTile(4), w.PercentRank(), w.CumeDist()}
}

// wanted is what a window function is to see of the i-th row.
func wanted(of []sale, i int) seen {
	s := of[i]
	o := seen{Row: s, Number: i + 1, N: len(of), Before: -7, Three: min(len(of), i+2) - max(0, i-1),
		Tile: tileOf(i, len(of))}
	upTo := 0
	for k, other := range of {
		c := byPrice.Compare(other, s)
		if c < 0 {
			o.Rank++
		}
		if c <= 0 {
			upTo++
			if k == 0 || byPrice.Compare(of[k-1], other) != 0 {
				o.Dense++
			}
		}
	}
	o.Cume = float64(upTo) / float64(len(of))
	if o.Rank++; len(of) > 1 {
		o.Share = float64(o.Rank-1) / float64(len(of)-1)
	}
	if i > 0 {
		o.Before = of[i-1].Price
	}
	return o
}

// tileOf is which of four tiles the i-th of n rows is in: the first tiles are the larger ones.
func tileOf(i, n int) int {
	for tile := 1; ; tile++ {
		size := n / 4
		if tile <= n%4 {
			size++
		}
		if i < size {
			return tile
		}
		i -= size
	}
}

// TestWindows against loops over the rows of a key.
func TestWindows(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		rows := sales(r, 150)
		got, err := theAction(t, func(g *rdd.Graph) rdd.Action[map[string][]seen] {
			return rdd.CollectAsMap(rdd.GroupByKey(rdd.WindowByKey(byShop(g, rows), byPrice, see)))
		})
		want := map[string][]seen{}
		for shop, of := range shops(rows) {
			for i := range of {
				want[shop] = append(want[shop], wanted(of, i))
			}
		}
		if err != nil || !maps.EqualFunc(got, want, slices.Equal) {
			r.Fatalf("%v: %v, want %v", err, got, want)
		}
	})
}

// totalsUpTo yields the running totals of a shop, as far as they are at most 20: the rest is left unread.
func totalsUpTo(key string, values iter.Seq[sale]) iter.Seq[rdd.Pair[string, int]] {
	return func(yield func(rdd.Pair[string, int]) bool) {
		sum := 0
		for v := range values {
			if sum += v.N; sum > 20 || !yield(rdd.Pair[string, int]{Key: key, Value: sum}) {
				return
			}
		}
	}
}

// TestSortedGroups: running totals and tops against loops over the rows of a key.
func TestSortedGroups(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		rows, n := sales(r, 150), rapid.IntRange(0, 5).Draw(r, "n")
		totals, err := theAction(t, func(g *rdd.Graph) rdd.Action[map[string][]int] {
			return rdd.CollectAsMap(rdd.GroupByKey(rdd.FlatMapSortedGroups(byShop(g, rows), byPrice, totalsUpTo)))
		})
		if err != nil {
			r.Fatal(err)
		}
		tops, err := theAction(t, func(g *rdd.Graph) rdd.Action[map[string][]sale] {
			return rdd.CollectAsMap(rdd.TopByKey(byShop(g, rows), n, byPrice))
		})
		for shop, of := range shops(rows) {
			var sums []int
			for p := range totalsUpTo(shop, slices.Values(of)) {
				sums = append(sums, p.Value)
			}
			if !slices.Equal(totals[shop], sums) {
				r.Fatalf("running totals of %q are %v, want %v", shop, totals[shop], sums)
			}
			if first := of[:min(n, len(of))]; err != nil || !slices.Equal(tops[shop], first) {
				r.Fatalf("top %d of %q: %v, want %v (%v)", n, shop, tops[shop], first, err)
			}
		}
	})
}

// TestGroupsOfManyValuesAreRead from disk where they do not fit into memory.
func TestGroupsOfManyValuesAreRead(t *testing.T) {
	total := func(g *rdd.Graph) rdd.Action[[]int64] {
		pairs := rdd.KeyBy(rdd.Range(g, 0, 200_000, 4), func(n int64) int64 { return n % 2 })
		return rdd.Collect(rdd.FlatMapSortedGroups(pairs, rdd.Desc(func(n int64) int64 { return n }),
			func(_ int64, values iter.Seq[int64]) iter.Seq[int64] {
				return func(yield func(int64) bool) {
					last, n := int64(math.MaxInt64), int64(0)
					for v := range values {
						if v >= last {
							panic(fmt.Sprintf("%d after %d", v, last))
						}
						last, n = v, n+1
					}
					yield(n)
				}
			}))
	}
	got, err := theAction(t, total)
	if err != nil || !slices.Equal(got, []int64{100_000, 100_000}) {
		t.Errorf("%v, %v", got, err)
	}
}

// TestArithmetic: sums do not wrap round, and lose nothing that a double has.
func TestArithmetic(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		rows := rapid.SliceOf(rapid.Int64()).Draw(r, "rows")
		exact := new(big.Int)
		for _, x := range rows {
			exact.Add(exact, big.NewInt(x))
		}
		got, err := theAction(t, func(g *rdd.Graph) rdd.Action[int64] {
			return rdd.Sum(rdd.Parallelize(g, 3, rows...))
		})
		if exact.IsInt64() != (err == nil) || err == nil && got != exact.Int64() {
			r.Fatalf("%d, %v; want %v", got, err, exact)
		}
		bytes := rapid.SliceOfN(rapid.Byte(), 0, 5).Draw(r, "bytes")
		whole := 0
		for _, b := range bytes {
			whole += int(b)
		}
		small, err := theAction(t, func(g *rdd.Graph) rdd.Action[uint8] {
			return rdd.Sum(rdd.Parallelize(g, 2, bytes...))
		})
		if (whole <= 255) != (err == nil) || err == nil && int(small) != whole {
			r.Fatalf("%d, %v; want %v", small, err, whole)
		}
	})
	floats, err := theAction(t, func(g *rdd.Graph) rdd.Action[float64] {
		return rdd.Sum(rdd.Parallelize(g, 2, 1, 1e100, 1, -1e100))
	})
	if err != nil || floats != 2 {
		t.Errorf("a sum of 1, 1e100, 1 and -1e100 is %v, %v", floats, err)
	}
	infinite, err := theAction(t, func(g *rdd.Graph) rdd.Action[float64] {
		return rdd.Sum(rdd.Parallelize(g, 2, math.Inf(1), 1))
	})
	if err != nil || !math.IsInf(infinite, 1) {
		t.Errorf("%v, %v", infinite, err)
	}
	mean, err := theAction(t, func(g *rdd.Graph) rdd.Action[float64] { return rdd.Mean(rdd.Range(g, 0, 11, 3)) })
	if err != nil || mean != 5 {
		t.Errorf("mean %v, %v", mean, err)
	}
	most, err := theAction(t, func(g *rdd.Graph) rdd.Action[time.Time] {
		return rdd.Max(rdd.Parallelize(g, 2, time.Unix(3, 1), time.Unix(3, 2), time.Unix(1, 0)))
	})
	if err != nil || !most.Equal(time.Unix(3, 2)) {
		t.Errorf("max %v, %v", most, err)
	}
	least, err := theAction(t, func(g *rdd.Graph) rdd.Action[string] {
		return rdd.Min(rdd.Parallelize(g, 2, "b", "a", "c"))
	})
	if err != nil || least != "a" {
		t.Errorf("min %v, %v", least, err)
	}
	for name, of := range map[string]func(g *rdd.Graph) rdd.Action[float64]{
		"mean": func(g *rdd.Graph) rdd.Action[float64] { return rdd.Mean(rdd.Parallelize[float64](g, 1)) },
		"max":  func(g *rdd.Graph) rdd.Action[float64] { return rdd.Max(rdd.Parallelize[float64](g, 1)) },
		"tree": func(g *rdd.Graph) rdd.Action[float64] {
			return rdd.TreeReduce(rdd.Parallelize[float64](g, 1), math.Max)
		},
	} {
		if _, err := theAction(t, of); err == nil || !strings.Contains(err.Error(), "empty") {
			t.Errorf("%s of nothing: %v", name, err)
		}
	}
	tree, err := theAction(t, func(g *rdd.Graph) rdd.Action[int64] {
		return rdd.TreeReduce(rdd.Range(g, 0, 1000, 17), func(a, b int64) int64 { return a + b })
	})
	if err != nil || tree != 499500 {
		t.Errorf("tree reduce %v, %v", tree, err)
	}
}

// TestJoinsThatKeepRows: semi, anti and joins with functions, where sides are small, large and spread alike.
func TestJoinsThatKeepRows(t *testing.T) {
	type pair = rdd.Pair[int64, int64]
	for _, placed := range []bool{false, true} {
		sides := func(g *rdd.Graph) (left, right rdd.Dataset[pair]) {
			left = rdd.Map(rdd.Range(g, 0, 100, 4), func(n int64) pair { return pair{Key: n % 20, Value: n} })
			right = rdd.Map(rdd.Range(g, 0, 60, 3), func(n int64) pair { return pair{Key: n % 15 * 2, Value: n} })
			if placed {
				p := rdd.HashPartitioner[int64](4)
				left, right = rdd.PartitionBy(left, p), rdd.PartitionBy(right, p)
			}
			return left, right
		}
		collect := func(name string, of func(left, right rdd.Dataset[pair]) rdd.Dataset[int64]) []int64 {
			got, err := theAction(t, func(g *rdd.Graph) rdd.Action[[]int64] { return rdd.Collect(of(sides(g))) })
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			slices.Sort(got)
			return got
		}
		var even, odd []int64
		for n := range int64(100) {
			if n%20%2 == 0 {
				even = append(even, n)
			} else {
				odd = append(odd, n)
			}
		}
		if got := collect("semi", func(l, r rdd.Dataset[pair]) rdd.Dataset[int64] {
			return rdd.Values(rdd.SemiJoin(l, r))
		}); !slices.Equal(got, even) {
			t.Errorf("semi, placed %v: %v", placed, got)
		}
		if got := collect("anti", func(l, r rdd.Dataset[pair]) rdd.Dataset[int64] {
			return rdd.Values(rdd.AntiJoin(l, r))
		}); !slices.Equal(got, odd) {
			t.Errorf("anti, placed %v: %v", placed, got)
		}
		if got := collect("join", func(l, r rdd.Dataset[pair]) rdd.Dataset[int64] {
			return rdd.JoinWith(l, r, func(_, v, w int64) int64 { return v })
		}); len(got) != 4*len(even) {
			t.Errorf("join, placed %v: %d rows", placed, len(got))
		}
		if got := collect("left join", func(l, r rdd.Dataset[pair]) rdd.Dataset[int64] {
			return rdd.LeftJoinWith(l, r, func(_, v int64, w *int64) int64 {
				if w == nil {
					return -v - 1
				}
				return v
			})
		}); len(got) != 4*len(even)+len(odd) || got[0] != -100 {
			t.Errorf("left join, placed %v: %d rows, the first %d", placed, len(got), got[0])
		}
		// what JoinWith makes is not where its keys' hashes say, even if both sides were
		again := collect("joined again", func(l, r rdd.Dataset[pair]) rdd.Dataset[int64] {
			other := rdd.JoinWith(l, r, func(_, v, w int64) pair { return pair{Key: w % 7, Value: v} })
			return rdd.JoinWith(other, rdd.PartitionBy(r, rdd.HashPartitioner[int64](4)),
				func(k, v, w int64) int64 { return k })
		})
		want := 0
		for v := range int64(100) {
			for w := range int64(60) {
				if v%20 == w%15*2 {
					for x := range int64(60) {
						if w%7 == x%15*2 {
							want++
						}
					}
				}
			}
		}
		if len(again) != want {
			t.Errorf("joined again, placed %v: %d rows, want %d", placed, len(again), want)
		}
	}
}

// TestWindowsAtTheirEdges: frames without a row, and all rows equal.
func TestWindowsAtTheirEdges(t *testing.T) {
	got, err := theAction(t, func(g *rdd.Graph) rdd.Action[[]string] {
		pairs := rdd.KeyBy(rdd.Range(g, 0, 4, 1), func(int64) bool { return true })
		return rdd.Collect(rdd.Values(rdd.WindowByKey(pairs, rdd.Asc(func(n int64) int64 { return n / 2 }),
			func(w *rdd.Window[int64]) string {
				return fmt.Sprint(w.Between(-5, -3), w.Between(1, 9), w.Between(2, 1), w.CumeDist())
			})))
	})
	want := []string{"[] [1 2 3] [] 0.5", "[] [2 3] [] 0.5", "[] [3] [] 1", "[0] [] [] 1"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

// TestSumsByKeyAreWhatTheyAre, in whatever order the numbers come.
func TestSumsByKeyAreWhatTheyAre(t *testing.T) {
	for parts := 1; parts < 4; parts++ {
		got, err := theAction(t, func(g *rdd.Graph) rdd.Action[map[bool]int8] {
			numbers := rdd.Parallelize[int8](g, parts, 100, 100, -100, -100, -30)
			keyed := rdd.KeyBy(numbers, func(int8) bool { return true })
			return rdd.CollectAsMap(rdd.SumByKey(keyed))
		})
		if err != nil || got[true] != -30 {
			t.Errorf("%d partitions: %v, %v", parts, got, err)
		}
	}
	if _, err := theAction(t, func(g *rdd.Graph) rdd.Action[map[bool]int8] {
		return rdd.CollectAsMap(rdd.SumByKey(rdd.Parallelize(g, 1, rdd.Pair[bool, int8]{Value: 100},
			rdd.Pair[bool, int8]{Value: 100})))
	}); err == nil || !strings.Contains(err.Error(), "int8") {
		t.Errorf("200 as an int8: %v", err)
	}
}

// TestOtherVerbs of which each is a line.
func TestOtherVerbs(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.txt", "b.txt", "empty.txt"} {
		content := strings.Repeat(name[:1]+"\n", max(0, 3*(6-len(name))))
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	letters := func(g *rdd.Graph) rdd.Dataset[string] { return rdd.Parallelize(g, 3, "b", "a", "bb", "aa", "c", "a") }
	first := func(s string) string { return s[:1] }
	for name, c := range map[string]struct {
		of   func(g *rdd.Graph) rdd.Action[string]
		want string
	}{
		"group by": {func(g *rdd.Graph) rdd.Action[string] {
			return printed(rdd.CollectAsMap(rdd.GroupBy(letters(g), first)))
		}, "map[a:[a aa a] b:[b bb] c:[c]]"},
		"distinct by": {func(g *rdd.Graph) rdd.Action[string] {
			return printed(rdd.Collect(rdd.OrderBy(rdd.DistinctBy(letters(g), first), rdd.Asc(first))))
		}, "[a b c]"},
		"cogroup of three": {func(g *rdd.Graph) rdd.Action[string] {
			by := rdd.KeyBy(letters(g), first)
			some := rdd.Filter(by, func(p rdd.Pair[string, string]) bool { return len(p.Value) == 2 })
			n := rdd.MapValues(by, func(s string) int { return len(s) })
			return printed(rdd.CollectAsMap(rdd.CoGroup3(by, some, n)))
		}, "map[a:{[a aa a] [aa] [1 2 1]} b:{[b bb] [bb] [1 2]} c:{[c] [] [1]}]"},
		"zip partitions": {func(g *rdd.Graph) rdd.Action[string] {
			return printed(rdd.Collect(rdd.ZipPartitions(letters(g), rdd.Range(g, 0, 9, 3),
				func(part int, l iter.Seq[string], r iter.Seq[int64]) iter.Seq[string] {
					return func(yield func(string) bool) {
						yield(fmt.Sprint(part, slices.Collect(l), slices.Collect(r)))
					}
				})))
		}, "[0 [b a] [0 1 2] 1 [bb aa] [3 4 5] 2 [c a] [6 7 8]]"},
		"unique ids": {func(g *rdd.Graph) rdd.Action[string] {
			return printed(rdd.Collect(rdd.Keys(rdd.ZipWithUniqueID(letters(g)))))
		}, "[0 3 1 4 2 5]"},
		"whole files": {func(g *rdd.Graph) rdd.Action[string] {
			return printed(rdd.Collect(rdd.Map(rdd.WholeTextFiles(g, dir), func(p rdd.Pair[string, string]) string {
				return fmt.Sprintf("%s:%d", filepath.Base(p.Key), len(p.Value))
			})))
		}, "[a.txt:6 b.txt:6 empty.txt:0]"},
		"for each partition": {func(g *rdd.Graph) rdd.Action[string] {
			return printed(rdd.ForEachPartition(letters(g), func(_ int, rows iter.Seq[string]) error {
				for range rows {
				}
				return nil
			}))
		}, "6"},
		"sums by key": {func(g *rdd.Graph) rdd.Action[string] {
			return printed(rdd.CollectAsMap(rdd.SumByKey(rdd.MapValues(rdd.KeyBy(letters(g), first),
				func(s string) int8 { return int8(len(s)) }))))
		}, "map[a:4 b:3 c:1]"},
		"extremes by key": {func(g *rdd.Graph) rdd.Action[string] {
			by := rdd.Asc(func(s string) int { return len(s) })
			keyed := rdd.KeyBy(letters(g), first)
			return printed(rdd.CollectAsMap(rdd.Join(rdd.MaxByKey(keyed, by), rdd.MinByKey(keyed, by))))
		}, "map[a:{aa a} b:{bb b} c:{c c}]"},
		"approximate": {func(g *rdd.Graph) rdd.Action[string] {
			return printed(rdd.CollectAsMap(rdd.CountApproxDistinctByKey(rdd.KeyBy(letters(g), first))))
		}, "map[a:2 b:2 c:1]"},
		"empty": {func(g *rdd.Graph) rdd.Action[string] { return printed(rdd.IsEmpty(letters(g))) }, "false"},
		"sample by key": {func(g *rdd.Graph) rdd.Action[string] {
			return printed(rdd.Collect(rdd.Values(rdd.SampleByKey(rdd.KeyBy(letters(g), first),
				map[string]float64{"a": 1, "b": 0, "c": 1}, 1))))
		}, "[a aa c a]"},
		"secondary sort": {func(g *rdd.Graph) rdd.Action[string] {
			byKey := rdd.Desc(func(p rdd.Pair[string, string]) string { return p.Key })
			byLength := rdd.Desc(func(p rdd.Pair[string, string]) int { return len(p.Value) })
			return printed(rdd.Collect(rdd.Values(rdd.RepartitionAndSortBy(rdd.KeyBy(letters(g), first),
				rdd.HashPartitioner[string](1), byKey.Then(byLength)))))
		}, "[c bb b aa a a]"},
	} {
		if got, err := theAction(t, c.of); err != nil || got != c.want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, c.want)
		}
	}
}

// printed returns an action whose result is another's as fmt prints it.
func printed[R any](a rdd.Action[R]) rdd.Action[string] {
	return rdd.Then(a, func(r R) string { return fmt.Sprint(r) })
}
