package experiment

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/pace"
)

// Sweep asks how long an iteration takes by several ways as something grows: how much slots are slowed down, or a
// parameter.
type Sweep struct {
	Title  string
	About  []string
	Jobs   []Job
	Points []Point
	Ways   []Way
	Clocks int                          // iterations of a run
	Reach  bool                         // it is asked, too, when a way is where the first has come to
	Theirs map[string]map[string]string // what a paper has, by point and way
}

// Point is a place of a sweep.
type Point struct {
	Name string
	Law  Law
}

// SweepRow is what a job's iterations took at a point by a way: medians over seeds.
type SweepRow struct {
	Job       string   `json:"job"`
	Point     string   `json:"point"`
	Way       string   `json:"way"`
	Each      Known    `json:"seconds_an_iteration"`
	Ideal     Known    `json:"times_ideal"`
	Idle      Known    `json:"idle_share"`
	Helped    Known    `json:"helped_share"`
	Objective Known    `json:"objective"`
	Reached   Known    `json:"iterations_to_the_first_ways_objective,omitempty"`
	Seconds   Known    `json:"seconds_to_it,omitempty"`
	Theirs    string   `json:"theirs,omitempty"`
	Failed    []string `json:"failed,omitempty"`
}

// untimed is how many of a run's iterations, the first, are not timed: workers of the first do not know each other yet,
// and some jobs begin with a pass of their own.
const untimed = 10

// Run makes the runs.
func (s *Sweep) Run(ctx context.Context, r *Runner) ([]SweepRow, error) {
	var runs, long []Run
	for i := range s.Jobs {
		if _, err := r.Data(ctx, &s.Jobs[i]); err != nil {
			return nil, err
		}
	}
	s.each(func(j *Job, p *Point, w *Way) {
		for _, law := range p.Law.Paces {
			runs = append(runs, s.run(r, j, p, w, law, untimed))
			long = append(long, s.run(r, j, p, w, law, s.Clocks))
		}
	})
	if s.Reach {
		if err := r.allLogged(ctx, long); err != nil {
			return nil, err
		}
	}
	if err := r.Do(ctx, append(runs, long...)); err != nil {
		return nil, err
	}
	var rows []SweepRow
	var err error
	s.each(func(j *Job, p *Point, w *Way) {
		row, failed := s.row(ctx, r, j, p, w)
		rows = append(rows, row)
		if err == nil {
			err = failed
		}
	})
	return rows, err
}

func (s *Sweep) each(do func(j *Job, p *Point, w *Way)) {
	for i := range s.Jobs {
		for k := range s.Points {
			for n := range s.Ways {
				do(&s.Jobs[i], &s.Points[k], &s.Ways[n])
			}
		}
	}
}

// run returns a run of a number of iterations.
func (s *Sweep) run(r *Runner, j *Job, p *Point, w *Way, law string, iterations int) Run {
	end := []string{"--max-iterations", strconv.Itoa(iterations)}
	if !j.Endless {
		end = append(end, "--tol", "0")
	}
	return j.run(r.dataOf(j), &p.Law, law, w.Flags(j), end...)
}

// row gathers what a job came to at a point by a way.
func (s *Sweep) row(ctx context.Context, r *Runner, j *Job, p *Point, w *Way) (SweepRow, error) {
	row := SweepRow{Job: j.Name, Point: p.Name, Way: w.Name, Reached: Known(math.NaN()),
		Theirs: s.Theirs[p.Name][w.Name]}
	var each, ideals, idle, helped, objective, reached, seconds []float64
	for _, law := range p.Law.Paces {
		short, long := r.Result(s.run(r, j, p, w, law, untimed)), r.Result(s.run(r, j, p, w, law, s.Clocks))
		if short.Failed+long.Failed != "" {
			row.Failed = append(row.Failed, long.Run+": "+short.Failed+long.Failed)
			continue
		}
		took := (long.Seconds - short.Seconds) / float64(long.Iterations-short.Iterations)
		each = append(each, took)
		ideals = append(ideals, took/s.ideal(j, p, law, long))
		objective = append(objective, long.Objective)
		if long.Waited != nil {
			idle = append(idle, *long.Waited)
		}
		if long.Helped != nil {
			helped = append(helped, *long.Helped)
		}
		if s.Reach {
			n, err := s.reached(ctx, r, j, p, w, law)
			if err != nil {
				return row, err
			}
			reached, seconds = append(reached, n), append(seconds, n*took)
		}
	}
	row.Each, row.Ideal, row.Idle, row.Helped = middle(each), middle(ideals), middle(idle), middle(helped)
	row.Objective, row.Reached, row.Seconds = middle(objective), middle(reached), middle(seconds)
	return row, nil
}

// middle returns the median of times of which none may be missing.
func middle(all []float64) Known {
	if slices.ContainsFunc(all, math.IsNaN) {
		return Known(math.NaN())
	}
	return median(all)
}

// reached returns after how many iterations a way has an objective that is no more than a thousandth above the first
// way's last, relatively; NaN if it never has.
func (s *Sweep) reached(ctx context.Context, r *Runner, j *Job, p *Point, w *Way, law string) (float64, error) {
	target := r.Result(s.run(r, j, p, &s.Ways[0], law, s.Clocks)).Objective
	path, err := r.logged(ctx, s.run(r, j, p, w, law, s.Clocks))
	if err != nil {
		return 0, err
	}
	values, err := objectivesOf(path)
	if err != nil {
		return 0, err
	}
	last := r.Result(s.run(r, j, p, w, law, s.Clocks)).Iterations
	for i, v := range values {
		if v <= target+1e-3*math.Abs(target) {
			return float64(last) * float64(i+1) / float64(len(values)), nil
		}
	}
	return math.NaN(), nil
}

// objectivesOf returns the objectives at the ticks of a loop without steps, as an event log has them: reported, or
// found by a pass over all rows.
func objectivesOf(path string) (all []float64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.New(fault.BadInput, "read", path, err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var line struct {
			Event     string             `json:"event"`
			Values    map[string]float64 `json:"values"`
			Objective *float64           `json:"objective"`
			Commit    json.RawMessage    `json:"commit"`
		}
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			continue
		}
		switch v, reported := line.Values["objective"]; {
		case line.Event == "iteration" && reported:
			all = append(all, v)
		case line.Event == "evaluation" && line.Commit != nil && line.Objective != nil:
			all = append(all, *line.Objective)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fault.New(fault.BadInput, "read", path, err)
	}
	return all, nil
}

// ideal returns how long an iteration would take if all slots were always busy, at the speeds that the law gives them
// from the beginning on.
func (s *Sweep) ideal(j *Job, p *Point, law string, res *Result) float64 {
	l, err := pace.Parse(law, float64(j.rate()))
	if err != nil {
		return math.NaN()
	}
	executors, slots := p.Law.shape(l)
	rows := cmp.Or(res.Documents, res.Rows, res.Users) // of which laws say how many a slot processes
	if rows == 0 {
		return math.NaN()
	}
	l.Balance(rows, executors, slots)
	n := float64(res.Iterations)
	return whenDone(l, executors, slots, n*float64(rows)).Seconds() / n
}

// shape returns how many executors and slots runs under a law have.
func (l *Law) shape(of *pace.Law) (executors, slots int) {
	executors, slots = of.Executors, max(1, of.Slots)
	for i, flag := range l.Flags {
		if n, err := strconv.Atoi(l.Flags[min(i+1, len(l.Flags)-1)]); err == nil && flag == "--executors" {
			executors = n
		}
	}
	return max(1, executors), slots
}

// whenDone returns when slots that are always busy have folded a number of rows, all together.
func whenDone(l *pace.Law, executors, slots int, rows float64) time.Duration {
	low, high := time.Duration(0), time.Second
	for folded(l, executors, slots, high) < rows && high < 1000*time.Hour {
		low, high = high, 2*high
	}
	for high-low > time.Millisecond/10 {
		if middle := (low + high) / 2; folded(l, executors, slots, middle) < rows {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// folded returns how many rows slots fold until a time.
func folded(l *pace.Law, executors, slots int, end time.Duration) (rows float64) {
	for e := range executors {
		for k := range slots {
			for at := time.Duration(0); at < end; {
				rate, until := l.Rate(e, k, slots, at)
				until = min(until, end)
				rows += rate * (until - at).Seconds()
				at = until
			}
		}
	}
	return rows
}

// Report shows the rows, and of each job the seconds of an iteration by every way, point by point.
func (s *Sweep) Report(rows []SweepRow) *Report {
	r := &Report{Title: s.Title, About: s.About, All: rows,
		Header: []string{"job", "at", "model", "s an iteration", "times Ideal", "idle", "helped", "objective"}}
	if s.Reach {
		r.Header = append(r.Header, "iterations to the first's", "seconds to it")
	}
	if s.Theirs != nil {
		r.Header = append(r.Header, "the paper's")
	}
	for i, row := range rows {
		texts := []string{row.Job, row.Point, row.Way, number(float64(row.Each)), number(float64(row.Ideal)),
			percent(row.Idle), percent(row.Helped), number(float64(row.Objective))}
		if s.Reach {
			texts = append(texts, whole(row.Reached), number(float64(row.Seconds)))
		}
		if s.Theirs != nil {
			texts = append(texts, row.Theirs)
		}
		r.Rows = append(r.Rows, texts)
		if i%len(s.Ways) == 0 {
			r.Charts = append(r.Charts, Chart{Title: fmt.Sprintf("%s, %s: seconds an iteration", row.Job, row.Point)})
		}
		c := &r.Charts[len(r.Charts)-1]
		c.Names, c.Times = append(c.Names, row.Way), append(c.Times, float64(row.Each))
	}
	return r
}
