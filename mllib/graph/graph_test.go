package graph

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/internal/datasets"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/tables"
)

func rank(t *testing.T, c Config, flags ...string) (r *Ranks, err error) {
	t.Helper()
	cfg, err := volley.ParseConfig(append(flags, "--data-dir", t.TempDir())...)
	if err != nil {
		t.Fatal(err)
	}
	_, err = volley.Run(context.Background(), cfg, "pagerank", c, BuildPageRank,
		func(ctx context.Context, s *rdd.Session, c Config, p *PageRankPlan) (string, error) {
			var err error
			r, err = RankNodes(ctx, s, c, p)
			return "", err
		})
	return r, err
}

func connected(t *testing.T, c Edges, flags ...string) (r *Components, err error) {
	t.Helper()
	cfg, err := volley.ParseConfig(append(flags, "--data-dir", t.TempDir())...)
	if err != nil {
		t.Fatal(err)
	}
	_, err = volley.Run(context.Background(), cfg, "components", c, BuildComponents,
		func(ctx context.Context, s *rdd.Session, c Edges, p *ComponentsPlan) (string, error) {
			var err error
			r, err = FindComponents(ctx, s, c, p)
			return "", err
		})
	return r, err
}

// defaults are those of the command.
func defaults(data ...string) Config {
	return Config{Edges: Edges{Data: data, Splits: 8}, Damping: 0.85, Tol: 1e-12, MaxIterations: 500,
		Model: tables.BSP()}
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "edges.txt")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// drawn returns the lines of edges between a few nodes, some of them given twice, some from a node to itself.
func drawn(nodes, edges int, seed uint64) (text string, list [][2]int64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	var b strings.Builder
	for range edges {
		from, to := int64(rng.IntN(nodes)*3-7), int64(rng.IntN(nodes/2)*3-7)
		list = append(list, [2]int64{from, to})
		fmt.Fprintf(&b, "%d\t%d\n", from, to)
	}
	return b.String(), list
}

// byDefinition iterates PageRank over a matrix of all nodes, one number after the other.
func byDefinition(list [][2]int64, damping float64, personal ...int64) map[int64]float64 {
	out, is, rank := map[int64]int{}, map[[2]int64]bool{}, map[int64]float64{}
	for _, e := range list {
		rank[e[0]], rank[e[1]] = 0, 0
		if !is[e] {
			is[e] = true
			out[e[0]]++
		}
	}
	begins := map[int64]float64{}
	for id := range rank {
		begins[id] = 1 / float64(len(rank))
	}
	if personal != nil {
		clear(begins)
		for _, id := range personal {
			begins[id] += 1 / float64(len(personal))
		}
	}
	for range 400 {
		next, hanging := map[int64]float64{}, 0.0
		for id, r := range rank {
			if out[id] == 0 {
				hanging += r
			}
		}
		for id := range rank {
			next[id] = (1 - damping + damping*hanging) * begins[id]
		}
		for e := range is {
			next[e[1]] += damping * rank[e[0]] / float64(out[e[0]])
		}
		rank = next
	}
	return rank
}

// TestRanksAreThoseOfTheDefinition, of graphs with nodes that nothing leaves or leads to, under exact and bounded
// models.
func TestRanksAreThoseOfTheDefinition(t *testing.T) {
	t.Parallel()
	for seed, m := range []tables.Model{tables.BSP(), tables.SSP(2), tables.ASP(), tables.CAP(1)} {
		text, list := drawn(60, 150, uint64(seed))
		for _, personal := range [][]int64{nil, {list[0][0], list[1][1]}} {
			c := defaults(file(t, "# a comment\r\n\r\n% another\r\n"+text))
			c.Model, c.Personal = m, personal
			c.MaxIterations, c.Tol = 5000, 1e-11
			r, err := rank(t, c, "--executors", "3")
			if err != nil {
				t.Fatal(err)
			}
			want, sum := byDefinition(list, 0.85, personal...), 0.0
			for i, id := range r.Nodes {
				if sum += r.Ranks[i]; math.Abs(r.Ranks[i]-want[id]) > r.Bound+1e-14 {
					t.Fatalf("%v, node %d: %v, want %v", m, id, r.Ranks[i], want[id])
				}
			}
			if len(r.Nodes) != len(want) || math.Abs(sum-1) > 1e-12 || !r.Converged || r.Bound > 1e-10 {
				t.Errorf("%v: %d nodes of %d, sum %v, converged %v, within %v", m, len(r.Nodes), len(want), sum,
					r.Converged, r.Bound)
			}
		}
	}
}

// TestComponentsAreThoseOfTheDefinition: two nodes are in one if a search finds one from the other.
func TestComponentsAreThoseOfTheDefinition(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		text, list := drawn(200, 120, seed)
		r, err := connected(t, Edges{Data: []string{file(t, text)}, Splits: 5})
		if err != nil {
			t.Fatal(err)
		}
		least := map[int64]int64{}
		for _, e := range list {
			least[e[0]], least[e[1]] = e[0], e[1]
		}
		for range list {
			for _, e := range list {
				m := min(least[e[0]], least[e[1]])
				least[e[0]], least[e[1]] = m, m
			}
		}
		sizes := map[int64]int{}
		for i, id := range r.Nodes {
			if sizes[least[id]]++; r.Component[i] != least[id] {
				t.Fatalf("node %d is in %d, want %d", id, r.Component[i], least[id])
			}
		}
		largest := 0
		for _, n := range sizes {
			largest = max(largest, n)
		}
		if r.Count != len(sizes) || r.Largest != largest || len(r.Nodes) != len(least) {
			t.Errorf("%d components, the largest of %d, want %d of %d", r.Count, r.Largest, len(sizes), largest)
		}
	}
}

// TestBadEdgesAreNamed with their file and line.
func TestBadEdgesAreNamed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"1 2\n3\n":                    `line 2 of %s: "3" names one node`,
		"# n\n1 x\n":                  `line 2 of %s: "x" is no number of a node (the target of "1 x")`,
		"1.5 2\n":                     `line 1 of %s: "1.5" is no number`,
		"1 2\n9223372036854775807 1":  `line 2 of %s: "9223372036854775807" is no number`,
		"# nothing but a comment\n\n": "it holds no row",
	} {
		path := file(t, text)
		want = strings.Replace(want, "%s", path, 1)
		if _, err := rank(t, defaults(path)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		if _, err := connected(t, Edges{Data: []string{path}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	c := defaults(file(t, "1 2\n"))
	c.Personal = []int64{7}
	if _, err := rank(t, c); err == nil || !strings.Contains(err.Error(), "node 7: the graph does not have it") {
		t.Error(err)
	}
	for want, change := range map[string]func(*Config){
		"1 does not lie in [0, 1)": func(c *Config) { c.Damping = 1 },
		"-1 is below 0":            func(c *Config) { c.Tol = -1 },
		"0 rounds":                 func(c *Config) { c.MaxIterations = 0 },
		"-2 is negative":           func(c *Config) { c.Model = tables.SSP(-2) },
	} {
		c := defaults("x")
		if change(&c); c.Check() == nil || !strings.Contains(c.Check().Error(), want) {
			t.Errorf("%v, want %q", c.Check(), want)
		}
	}
}

// published are the highest ranks of graphs, as data/README.md has them, with their nodes and edges.
var published = []struct {
	path         string
	undirected   bool
	nodes, edges int
	ranks        string
}{
	{"wiki-Vote/Wiki-Vote.txt.gz", false, 7115, 103689,
		"4037:0.00460717 15:0.00367986 6634:0.00358685 2625:0.00328366 2398:0.00260864"},
	{"p2p-Gnutella/p2p-Gnutella08.txt", false, 6301, 20777, "367:0.00238791 249:0.00218449 145:0.00205511"},
	{"p2p-Gnutella/p2p-Gnutella31.txt.gz", false, 62586, 147892,
		"164:0.00012860 2118:0.00011969 2372:0.00009192"},
	{"ca-GrQc/CA-GrQc.txt", false, 5242, 28980, "14265:0.00144276 13801:0.00134079 13929:0.00130541"},
	{"facebook_combined/facebook_combined.txt.gz", true, 4039, 2 * 88234,
		"3437:0.00757457 107:0.00688838 1684:0.00630849 0:0.00622469"},
	{"web-Stanford/web-Stanford.relabelled.txt.gz", false, 281903, 2312497,
		"281:0.01130285 67:0.00926783 1352:0.00829727 4898:0.00302312 3367:0.00300128 341:0.00257173 " +
			"445:0.00245371 443:0.00243079 474:0.00239105 1350:0.00236401"},
}

// TestPublishedRanks holds the highest ranks of real graphs against those of their README, to 1e-8.
func TestPublishedRanks(t *testing.T) {
	for _, g := range published {
		t.Run(filepath.Base(g.path), func(t *testing.T) {
			path := datasets.Path(t, g.path)
			if testing.Short() && g.nodes > 100_000 {
				t.Skip("large")
			}
			c := defaults(path)
			c.Undirected = g.undirected
			r, err := rank(t, c)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Nodes) != g.nodes || int(r.Edges) != g.edges || !r.Converged || r.Bound > 1e-10 {
				t.Errorf("%d nodes, %d edges, converged %v within %v", len(r.Nodes), r.Edges, r.Converged, r.Bound)
			}
			order := make([]int, len(r.Nodes))
			for i := range order {
				order[i] = i
			}
			slices.SortFunc(order, func(a, b int) int {
				return map[bool]int{true: -1, false: 1}[r.Ranks[a] > r.Ranks[b]]
			})
			for i, want := range strings.Fields(g.ranks) {
				got := fmt.Sprintf("%d:%.8f", r.Nodes[order[i]], r.Ranks[order[i]])
				if got != want {
					t.Errorf("rank %d is %s, want %s", i+1, got, want)
				}
			}
		})
	}
}

// TestPlacesOfNodes are the same by number and by search, of nodes that leave few numbers out and of such that leave
// many; what is no node has the place of the next.
func TestPlacesOfNodes(t *testing.T) {
	t.Parallel()
	for _, step := range []int64{1, 3, mostLeftOut - 1, 1 << 40} {
		n := &nodes{}
		var ids []int64
		for i := range int64(100) {
			ids = append(ids, -50*step+i*step)
		}
		n.index(side(ids))
		if dense := n.place != nil; dense != (step < mostLeftOut) {
			t.Errorf("every %d: kept by number: %v", step, dense)
		}
		for _, id := range append([]int64{n.IDs[0] - 1, n.IDs[99] + 1, n.IDs[7] + 1, n.IDs[7] - 1}, n.IDs...) {
			if want, _ := slices.BinarySearch(n.IDs, id); int(n.at(id)) != want {
				t.Errorf("every %d: node %d is at %d, want %d", step, id, n.at(id), want)
			}
		}
	}
}

// TestNodesAreAsTheLibraryReadsThem holds the reading of numbers against strconv's.
func TestNodesAreAsTheLibraryReadsThem(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.OneOf(rapid.StringMatching(`[-+]?[0-9]{0,20}`), rapid.StringMatching(`[-+0-9a._]{0,5}`),
			rapid.Map(rapid.Int64Range(mostNode-2, mostNode+2), func(n int64) string { return fmt.Sprint(n) })).
			Draw(t, "word")
		rest := rapid.SampledFrom([]string{"", " ", "\t7", ",x", ";"}).Draw(t, "rest")
		want, err := strconv.ParseInt(word, 10, 64)
		are := err == nil && want <= mostNode && want >= -mostNode
		id, end, is := node([]byte(word + rest))
		if is != are || end != len(word) || is && id != want {
			t.Fatalf("%q: %d, of %d bytes, %v, want %d, %v", word+rest, id, end, is, want, are)
		}
	})
}

// side has nodes of one side of edges, in two splits.
func side(ids []int64) []ends {
	all := make([]ends, 2)
	for i, id := range ids {
		all[i%2].IDs = append(all[i%2].IDs, float64(id))
	}
	return all
}

// TestLinesAreReadAlike: those that are as most are, and any, by the same rules.
func TestLinesAreReadAlike(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		line := []byte(rapid.OneOf(rapid.StringMatching(`[0-9]{0,17}[ ,;\t]{0,2}[0-9]{0,17}([ \t].{0,3})?`),
			rapid.StringMatching(`[-+0-9 \t,;.#%a]{0,12}`)).Draw(t, "line"))
		got, is, err := parse(line)
		want, are, wrong := parseAny(line)
		if got != want || is != are || (err == nil) != (wrong == nil) {
			t.Fatalf("%q: %v, %v, %v, want %v, %v, %v", line, got, is, err, want, are, wrong)
		}
	})
}

func TestNumbersInOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		least := rapid.Int64Range(-mostNode, mostNode-10000).Draw(t, "least")
		ids := rapid.SliceOfN(rapid.Int64Range(least, least+rapid.Int64Range(0, 10000).Draw(t, "spread")), 1, 200).
			Draw(t, "ids")
		want := slices.Compact(slices.Sorted(slices.Values(ids)))
		n := &nodes{}
		if n.index(side(ids[:len(ids)/2]), side(ids[len(ids)/2:])); !slices.Equal(n.IDs, want) {
			t.Fatalf("%v, want %v", n.IDs, want)
		}
		for place, id := range want {
			if n.at(id) != int32(place) {
				t.Fatalf("node %d is at %d, want %d", id, n.at(id), place)
			}
		}
	})
}

// TestPlacesOfFlows: each node has a place; those of more edges come first, counted in doublings, and else the order
// of nodes.
func TestPlacesOfFlows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		out := rapid.SliceOfN(rapid.Int32Range(0, 40), 1, 100).Draw(t, "out")
		nodes := make([]int, len(out))
		for i := range nodes {
			nodes[i] = i
		}
		slices.SortStableFunc(nodes, func(a, b int) int {
			return cmp.Compare(math.Ilogb(float64(out[b])+0.5), math.Ilogb(float64(out[a])+0.5))
		})
		place := flowPlaces(out)
		for want, node := range nodes {
			if place[node] != int32(want) {
				t.Fatalf("%v: node %d is at %d, want %d", out, node, place[node], want)
			}
		}
	})
}
