package als

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/kernel"
	"github.com/volley-engine/volley/mllib/internal/model"
	"github.com/volley-engine/volley/rdd"
	"github.com/volley-engine/volley/storage/input"
	"github.com/volley-engine/volley/storage/input/rows"
)

// Model is a vector of Rank numbers for each user and each item. A saved one
// is plain data, as a linear one's.
type Model struct {
	Rank     int    `json:"rank"`
	Users    int    `json:"users"`
	Items    int    `json:"items"`
	Implicit bool   `json:"implicit"`
	Biases   bool   `json:"biases,omitempty"` // the last two numbers are the mean, and a user's and an item's own
	User     string `json:"user,omitempty"`   // columns of ratings
	Item     string `json:"item,omitempty"`
	Rating   string `json:"rating,omitempty"`

	TextUsers bool `json:"text_users,omitempty"` // their ids are texts
	TextItems bool `json:"text_items,omitempty"`

	Seen         int64 `json:"seen,omitempty"` // pairs of users and items that were trained on; 0 is not known
	users, items side
	seen         seenItems
}

type file struct {
	model.Head
	*Model
}

// Save writes the model's directory.
func (m *Model) Save(dir string, overwrite bool) error {
	sides := append(slices.Repeat([]string{"user"}, m.Users), slices.Repeat([]string{"item"}, m.Items)...)
	m.TextUsers, m.TextItems = m.users.Names != nil, m.items.Names != nil
	var c model.Columns
	if c.Texts("side", sides); m.TextUsers || m.TextItems {
		c.Texts("id", append(m.users.texts(), m.items.texts()...))
	} else {
		ids := make([]int64, 0, m.Users+m.Items)
		for _, id := range slices.Concat(m.users.IDs, m.items.IDs) {
			ids = append(ids, int64(id))
		}
		c.Ints("id", ids)
	}
	c.Vectors("vector", slices.Concat(m.users.At, m.items.At), m.Rank)
	if m.Seen > 0 {
		c.IntLists("rated", m.rated())
	}
	return model.Save(dir, overwrite, file{model.Head{Version: model.Version, Job: "als"}, m}, &c)
}

// texts returns the ids as texts.
func (s *side) texts() []string {
	if s.Names != nil {
		return slices.Clone(s.Names)
	}
	out := make([]string, len(s.IDs))
	for i, id := range s.IDs {
		out[i] = strconv.FormatFloat(id, 'f', 0, 64)
	}
	return out
}

// read takes ids over from texts.
func (s *side) read(texts []string, named bool) (ok bool) {
	s.IDs = make([]float64, len(texts))
	if named {
		s.Names = texts
		for i := range texts {
			s.IDs[i] = float64(i)
		}
		return slices.IsSorted(texts)
	}
	for i, text := range texts {
		n, err := strconv.ParseInt(text, 10, 64)
		if s.IDs[i] = float64(n); err != nil {
			return false
		}
	}
	return slices.IsSorted(s.IDs)
}

// rated returns the numbers of the items that each user has rated, and nothing for items: their ids, or the places of
// ids that are texts.
func (m *Model) rated() [][]int64 {
	out := make([][]int64, m.Users+m.Items)
	for u := range m.Users {
		for _, i := range m.seen.of(u) {
			out[u] = append(out[u], int64(m.items.IDs[i]))
		}
	}
	return out
}

// parse reads a row for each user, and then for each item.
func (m *Model) parse(s *model.Stored) {
	sides, vectors := s.Texts("side"), s.Vectors("vector", m.Rank)
	var ids []string
	if m.TextUsers || m.TextItems {
		ids = s.Texts("id")
	} else {
		for _, id := range s.Ints("id") {
			ids = append(ids, strconv.FormatInt(id, 10))
		}
	}
	if len(sides) != len(ids) || len(vectors) != m.Rank*len(ids) {
		return // which is noted
	}
	for k, name := range sides {
		if (name == "user") != (k < m.Users) {
			s.Fail("its users do not come first")
			return
		}
	}
	m.users, m.items = side{At: vectors[:m.Users*m.Rank]}, side{At: vectors[m.Users*m.Rank:]}
	if !m.users.read(ids[:m.Users], m.TextUsers) || !m.items.read(ids[m.Users:], m.TextItems) {
		s.Fail("its ids of users and items are not in order")
		return
	}
	if m.Seen > 0 {
		m.seen.parse(s, s.IntLists("rated"), m)
	}
}

// Reads reports whether a column is that of users or of items.
func (m *Model) Reads(name string, number int) bool {
	columns := ratingColumns(m.User, m.Item)
	return slices.Contains(slices.Concat(columns[0], columns[1]), name) ||
		slices.Contains([]string{m.User, m.Item}, strconv.Itoa(number))
}

// NameOf returns the id of a user, or an item, as the data have it.
func (m *Model) NameOf(id float64, user bool) string {
	s := &m.items
	if user {
		s = &m.users
	}
	if s.Names != nil && id >= 0 {
		return s.Names[int(id)]
	}
	return strconv.FormatFloat(id, 'f', 0, 64)
}

// IDOf returns what Top calls a user, or an item, that the data call by a text; −1 is one that the model does not know.
func (m *Model) IDOf(text string, user bool) (float64, error) {
	s := &m.items
	if user {
		s = &m.users
	}
	if s.Names != nil {
		if at, known := slices.BinarySearch(s.Names, text); known {
			return float64(at), nil
		}
		return -1, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n > 1<<53 || n < -1<<53 {
		return 0, fmt.Errorf("%q is not a whole number", text)
	}
	return float64(n), nil
}

// Kind is what is known of factorizations.
var Kind = model.Kind{Is: model.JobIs("als"),
	Load: func(head, numbers []byte) (model.Model, *input.Prepared, error) {
		m := &Model{}
		err := m.load(head, numbers)
		return m, nil, err
	}}

func (m *Model) load(head, numbers []byte) error {
	if err := json.Unmarshal(head, m); err != nil {
		return err
	}
	if m.Rank < 1 || m.Rank > maxRank || m.Users < 0 || m.Items < 0 || m.Users > 1<<31 || m.Items > 1<<31 {
		return fault.Newf(fault.Corrupt, "read", "model.json", "%d users and %d items of rank %d cannot be", m.Users,
			m.Items, m.Rank)
	}
	if m.Seen < 0 || m.Seen > 1<<40 {
		return fault.Newf(fault.Corrupt, "read", "model.json", "%d pairs of users and items cannot be", m.Seen)
	}
	return model.LoadColumns(numbers, m.Users+m.Items, m.parse)
}

// vector of a number; nil where the model does not know it.
func (s *side) vector(id float64, rank int) []float64 {
	if i, ok := slices.BinarySearch(s.IDs, id); ok {
		return s.At[i*rank : (i+1)*rank]
	}
	return nil
}

// score returns what the model makes of a user and an item: the rating, or, of
// implicit ones, how sure it is that the user likes it. False where it does not
// know both.
func (m *Model) score(user, item float64) (float64, bool) {
	u, i := m.users.vector(user, m.Rank), m.items.vector(item, m.Rank)
	if u == nil || i == nil {
		return math.NaN(), false
	}
	return kernel.Dot(u, i), true
}

// InputOf returns how tables of users and items are to be read that are to be predicted.
func (m *Model) InputOf(_ context.Context, in rdd.Input, _ []string) (rdd.Input, error) {
	return m.reads(in, false), nil
}

// reads returns how tables are to be read, of ratings or of users and items alone.
func (m *Model) reads(in rdd.Input, rated bool) rdd.Input {
	in.NoLabel = true
	if in.Fitted = m.preparation(rated); in.Fitted != nil {
		in.Known = append(in.Known, m.User, m.Item)
	}
	return in
}

// rowsOf returns what hands out the columns wanted of each row of a source's chunks.
func rowsOf(src *input.Source, uris []string, columns [][]string) (
	func(c *rows.Chunk, row func(v []float64) error) error, error) {
	at := make([]int, len(columns))
	for i, c := range columns {
		var err error
		if at[i], err = src.Column(c...); err != nil {
			return nil, err
		}
	}
	return func(c *rows.Chunk, row func(v []float64) error) error {
		v := make([]float64, len(at))
		for r := range c.Rows() {
			for i, j := range at {
				if !c.Dense() || j >= c.Width {
					return fault.Newf(fault.BadInput, "predict", strings.Join(uris, " "),
						"its rows have no column %d", j)
				}
				v[i] = c.Values[r*c.Width+j]
			}
			if err := row(v); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// each reads ratings and hands out user, item and rating of each.
func (m *Model) each(ctx context.Context, in rdd.Input, uris []string, row func(v []float64) error) error {
	src, err := input.Open(ctx, m.reads(in, true), uris...)
	if err != nil {
		return err
	}
	columns := ratingColumns(m.User, m.Item, m.Rating)
	of, err := rowsOf(src, uris, columns[:])
	if err != nil {
		return err
	}
	for part := range src.Len() {
		if err := src.Read(ctx, part, func(c *rows.Chunk) error { return of(c, row) }); err != nil {
			return err
		}
	}
	return nil
}

// preparation returns how ids that are texts become numbers; nil where there are none.
func (m *Model) preparation(rated bool) *input.Prepared {
	if m.users.Names == nil && m.items.Names == nil {
		return nil
	}
	columns := []input.IDColumn{{Name: m.User, IDs: m.users.Names}, {Name: m.Item, IDs: m.items.Names}}
	if rated {
		columns = append(columns, input.IDColumn{Name: cmp.Or(m.Rating, "rating")})
	}
	return input.PreparedIDs(columns...)
}

// Predict writes one line a row as CSV: user, item and score; NaN where the model
// does not know the user or the item.
func (m *Model) Predict(ctx context.Context, in rdd.Input, uris []string, w io.Writer) (rows int64, err error) {
	return model.Predict(ctx, m, in, uris, w, false)
}

// Says returns what is said of a user and an item.
func (m *Model) Says(each bool) (*model.Says, error) {
	if each {
		return nil, fault.Newf(fault.Usage, "predict", "probabilities", "a model of als has none").
			WithHint("logistic, softmax and mlp have them")
	}
	return &model.Says{Header: "user,item,prediction", Of: m.lines}, nil
}

// lines returns what adds the lines of a source's chunks.
func (m *Model) lines(src *input.Source, uris []string) (model.ChunkLines, error) {
	id := func(to []byte, column int, id float64) []byte {
		if src.Prepared == nil {
			return append(strconv.AppendFloat(to, id, 'f', 0, 64), ',')
		}
		return append(append(to, model.CSVField(src.Prepared.ID(column, id))...), ',')
	}
	columns := ratingColumns(m.User, m.Item)
	of, err := rowsOf(src, uris, columns[:2])
	return func(to *model.Lines, c *rows.Chunk) error {
		return of(c, func(v []float64) error {
			score, _ := m.score(v[0], v[1])
			to.Text = id(id(to.Text, 0, v[0]), 1, v[1])
			to.End(score)
			return nil
		})
	}, err
}

// rankedTop is how far down lists of recommendations are looked at by metrics.
const rankedTop = 10

// Evaluate computes rmse and mae over ratings whose user and item the model knows, and
// how many others there are (cold_rows). Of implicit ratings it is how well the first
// ten items of each user, those left out that it was trained on and the data do not
// have, are those that the data marks as liked: the mean average precision, and the
// normalized discounted gain.
func (m *Model) Evaluate(ctx context.Context, in rdd.Input, uris []string) (map[string]float64, error) {
	var all []model.Scored
	cold := 0.0
	liked := map[float64]map[float64]bool{}
	err := m.each(ctx, in, uris, func(v []float64) error {
		z, ok := m.score(v[0], v[1])
		if !ok {
			cold++
			return nil
		}
		all = append(all, model.Scored{Z: z, Y: v[2], Weight: 1})
		if m.Implicit && v[2] > 0 {
			if liked[v[0]] == nil {
				liked[v[0]] = map[float64]bool{}
			}
			liked[v[0]][v[1]] = true
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := map[string]float64{"cold_rows": cold}
	if m.Implicit {
		out["map_at_10"], out["ndcg_at_10"] = m.ranking(liked)
	} else if len(all) > 0 {
		r := model.RegressionMetrics(all)
		out["rmse"], out["mae"] = r["rmse"], r["mae"]
	}
	return out, nil
}

// ranking holds the first items of each user against those that are liked.
func (m *Model) ranking(liked map[float64]map[float64]bool) (meanPrecision, gain float64) {
	users := make([]float64, 0, len(liked))
	for u := range liked {
		users = append(users, u)
	}
	slices.Sort(users)
	keep := func(user, item float64) bool { return liked[user][item] }
	m.top(users, rankedTop, true, keep, func(user float64, items []Recommended) error {
		var hits, precision, sum, best float64
		for i := range min(rankedTop, len(liked[user])) {
			best += 1 / math.Log2(float64(i+2))
		}
		for i, r := range items {
			worth := 1 / math.Log2(float64(i+2))
			if liked[user][r.ID] {
				hits++
				precision += hits / float64(i+1)
				sum += worth
			}
		}
		meanPrecision += precision / float64(min(rankedTop, len(liked[user])))
		gain += sum / best
		return nil
	})
	n := max(1, float64(len(users)))
	return meanPrecision / n, gain / n
}

// Recommended is an item, or a user, and its score.
type Recommended struct {
	ID, Score float64
}

// topBlock is how many vectors are multiplied with all of the other side at a
// time.
const topBlock = 64

// Top calls yield with the n of the other side that score highest for each of some
// users (or items), the highest first. Numbers that the model does not know are
// left out, and so is what users have rated in training, unless it is asked for; nil
// is all.
func (m *Model) Top(ids []float64, n int, forUsers, rated bool,
	yield func(id float64, best []Recommended) error) error {
	var keep func(id, other float64) bool
	if rated {
		keep = func(float64, float64) bool { return true }
	}
	return m.top(ids, n, forUsers, keep, yield)
}

func (m *Model) top(ids []float64, n int, forUsers bool, keep func(id, other float64) bool,
	yield func(id float64, best []Recommended) error) error {
	mine, other := &m.items, &m.users
	if forUsers {
		mine, other = other, mine
	}
	if ids == nil {
		ids = mine.IDs
	}
	known := slices.DeleteFunc(slices.Clone(ids), func(id float64) bool { return mine.vector(id, m.Rank) == nil })
	var p kernel.Product
	scores := make([]float64, topBlock*len(other.IDs))
	right := kernel.RowMajor(other.At, len(other.IDs), m.Rank).T()
	for block := range slices.Chunk(known, topBlock) {
		var left []float64
		for _, id := range block {
			left = append(left, mine.vector(id, m.Rank)...)
		}
		scores = scores[:len(block)*len(other.IDs)]
		clear(scores)
		p.Add(kernel.RowMajor(scores, len(block), len(other.IDs)), kernel.RowMajor(left, len(block), m.Rank), right)
		for i, id := range block {
			row := scores[i*len(other.IDs) : (i+1)*len(other.IDs)]
			if m.seen.known() {
				m.leaveOut(id, forUsers, row, keep)
			}
			if err := yield(id, other.best(row, n)); err != nil {
				return err
			}
		}
	}
	return nil
}

// best returns the n highest scores, the highest first, of equal ones the lower number.
func (s *side) best(scores []float64, n int) []Recommended {
	byScore := func(a, b Recommended) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
	}
	var top []Recommended
	least := math.Inf(-1)
	for i, v := range scores {
		if len(top) >= n && v <= least {
			continue
		}
		if top = append(top, Recommended{s.IDs[i], v}); len(top) >= 2*n {
			slices.SortFunc(top, byScore)
			top = top[:n]
			least = top[n-1].Score
		}
	}
	slices.SortFunc(top, byScore)
	top = slices.DeleteFunc(top, func(r Recommended) bool { return math.IsInf(r.Score, -1) })
	return top[:min(n, len(top))]
}

// Describe returns the model in a few lines.
func (m *Model) Describe() string {
	what := "ratings"
	if m.Implicit {
		what = "implicit ratings"
	}
	return fmt.Sprintf("%d users and %d items, vectors of %d numbers, from %s\n", m.Users, m.Items, m.Rank, what)
}
