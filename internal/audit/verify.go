package audit

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/volley-engine/volley/abss"
	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/plan"
)

// Violation is a broken fact: what was broken, where, and how.
type Violation struct {
	Invariant string // "10.1 rows merged = rows folded", …
	Step      int
	Line      int
	What      string
}

// String names invariant, step and line.
func (v Violation) String() string {
	return fmt.Sprintf("line %d, step %d: %s: %s", v.Line, v.Step, v.Invariant, v.What)
}

// The invariants that a log can break, by their numbers in SEMANTICS
// section 10.
const (
	merged   = "invariant 10.1, rows merged = rows in the ledger"
	coverage = "invariant 10.1, coverage within [R_s·N, N]"
	cursors  = "invariant 10.2, rows of a split merged evenly"
	bspWhole = "invariant 10.3, bsp covers every row"
	once     = "invariant 10.4, nothing merged twice"
	stale    = "invariant 10.6, workers on tables within their slack"
	bounded  = "invariant 10.9, every wait bounded"
	whole    = "wholeness of the log"
	derived  = "derived figures"
	decided  = "decisions from reports"
)

// timerSlack is how much later than its bound a wait may end on the real
// clock of a busy machine.
const timerSlack = 5 * time.Second

// Report is the outcome of a verification.
type Report struct {
	Facts      int
	Steps      int
	Decided    int // steps and passes whose decisions follow from their reports
	Undecided  int // those whose reports the log has left out
	spans      map[int]span
	told       map[int]*driver.StepReport // by line, what was recomputed; only of a log that is followed
	Speeds     []Speed                    // of executors, in each step and pass
	Violations []Violation                // the first
	Broken     int                        // how many there are
}

// Speed is how many rows per second an executor has folded, by the end of a step or pass.
type Speed struct {
	Executor      int
	Until         time.Duration
	RowsPerSecond float64
}

// Took returns when the step or pass of a line has begun and ended, on the job's clock; not known is that of a line
// whose reports the log has left out.
func (r *Report) Took(line int) (began, ended time.Duration, known bool) {
	s, known := r.spans[line]
	return s.from, s.to, known
}

// Verify checks all of a log against the invariants.
func Verify(l *Log) *Report {
	v := newVerifier(l)
	if l.Header == nil {
		v.broken(whole, 0, 1, "the log is empty")
		return v.r
	}
	if !v.begin() {
		return v.r
	}
	for i := range l.Lines {
		v.line(&l.Lines[i])
	}
	v.footer()
	return v.r
}

func newVerifier(l *Log) *verifier {
	return &verifier{l: l, r: &Report{spans: map[int]span{}, told: map[int]*driver.StepReport{}}}
}

// begin takes the header, and reports whether what follows can be verified.
func (v *verifier) begin() bool {
	v.h = v.l.Header
	known := Verifies(v.h.Version) // other decisions follow from the reports of others
	v.fact(known, whole, 0, 1, "version %d, want %d: the program that wrote it, volley %s, verifies it", v.h.Version,
		driver.LogVersion, v.h.Versions.Volley)
	if !known {
		return false
	}
	v.packs = append(v.packs, newLedger(v.h.N, v.h.Weights, v.h.Entries))
	v.retell()
	v.header()
	return true
}

type verifier struct {
	l           *Log
	h           *driver.LogHeader
	r           *Report
	packs       []*ledger
	steps       int // the number of the last one
	trained     int // lines of steps
	lines       int // between header and footer
	evaluations int
	options     driver.LogOptions   // that the lines in hand were written under
	next        *driver.LogOptions  // of the last resume line, until its process has begun
	resumes     []int               // packs of the resume lines since the last step or pass
	retelling   *driver.Retelling   // nil where there are no events
	leftOut     bool                // reports were more than a log keeps
	ended       plan.Time           // when the step before did, and so much later as passes since then took
	nodes       int                 // of the plan
	turn        driver.LogIteration // the last that made no step
	update      int64               // what its line says of the time until its parameters were settled
	last        worked
	tick        ticked
	*ledger     // of the line in hand
}

// ledger is the state of a pack by the log so far.
type ledger struct {
	rows        []int64   // by split
	weights     []float64 // of their rows; nil where they have none
	entries     []int64   // of their rows; nil where these are not sparse
	n           int64     // in all
	total       []int64   // rows merged by split, as recomputed
	lastAttempt []int
	lastEpoch   []uint64       // of each split, in all processes of the job
	merged      []map[int]bool // attempts of each split in that epoch
	owners      []int
}

func newLedger(rows []int64, weights []float64, entries []int64) *ledger {
	l := &ledger{rows: rows, weights: weights, entries: entries, total: make([]int64, len(rows)),
		lastAttempt: make([]int, len(rows)), lastEpoch: make([]uint64, len(rows)),
		merged: make([]map[int]bool, len(rows))}
	for _, n := range rows {
		l.n += n
	}
	return l
}

// fact counts a checked fact and notes it where it does not hold.
func (v *verifier) fact(ok bool, invariant string, step, line int, format string, args ...any) {
	v.r.Facts++
	if !ok {
		v.broken(invariant, step, line, format, args...)
	}
}

func (v *verifier) broken(invariant string, step, line int, format string, args ...any) {
	if v.r.Broken++; len(v.r.Violations) < mostViolations {
		v.r.Violations = append(v.r.Violations, Violation{invariant, step, line, fmt.Sprintf(format, args...)})
	}
}

// mostViolations is how many are kept, the first.
const mostViolations = 10_000

func (v *verifier) header() {
	if len(v.h.N) > 0 || slices.ContainsFunc(v.l.Lines, Line.ofPack) {
		v.splits(v.h.N, v.h.Weights, v.h.Entries, len(v.h.Splits), 1)
	}
	o := v.options
	v.fact(o.Ratio > 0 && o.Ratio <= 1, whole, 0, 1, "synchronization ratio %v", o.Ratio)
	v.fact(o.StepTimeoutNs > 0 && o.GraceNs > 0 && o.MaxWaitNs > 0, bounded, 0, 1, "a bound is missing")
}

func (v *verifier) splits(rows []int64, weights []float64, entries []int64, hashes, line int) {
	v.fact(weights == nil || len(weights) == len(rows), whole, v.steps, line, "%d row counts, %d weights", len(rows),
		len(weights))
	v.fact(entries == nil || len(entries) == len(rows), whole, v.steps, line, "%d row counts, %d counts of entries",
		len(rows), len(entries))
	for i, w := range weights {
		v.fact(w >= 0, whole, v.steps, line, "split %d weighs %v", i, w)
	}
	for i, n := range rows {
		v.fact(n > 0, whole, v.steps, line, "split %d has %d rows", i, n)
	}
	v.fact(len(rows) > 0 && len(rows) == hashes, whole, v.steps, line, "%d row counts, %d hashes", len(rows), hashes)
}

// choose takes the ledger of a line's pack in hand.
func (v *verifier) choose(pack, line int) bool {
	known := pack >= 0 && pack < len(v.packs)
	v.fact(known, whole, v.steps, line, "pack %d was not opened", pack)
	if known {
		v.ledger = v.packs[pack]
	}
	return known
}

func (v *verifier) pack(p *driver.LogPack, line int) {
	v.fact(p.Pack == len(v.packs), whole, v.steps, line, "pack %d follows %d packs", p.Pack, len(v.packs))
	v.splits(p.N, p.Weights, p.Entries, len(p.Splits), line)
	v.packs = append(v.packs, newLedger(p.N, p.Weights, p.Entries))
	if v.retelling != nil {
		v.retelling.Describe(p.N, p.Weights, p.Entries)
	}
}

func (v *verifier) line(l *Line) {
	if v.lines++; l.Step != nil {
		v.trained++
	}
	switch {
	case l.Pack != nil:
		v.pack(l.Pack, l.Number)
	case l.Iteration != nil:
		v.iteration(l.Iteration, l.Number)
	case l.Slots != nil:
		v.slots(l.Slots, l.Number)
	case l.Tables != nil:
		v.tables(l.Tables, l.Number)
	case l.Shown():
		v.work(l)
	case l.Step != nil && !v.choose(l.Step.Pack, l.Number), l.Evaluation != nil &&
		!v.choose(l.Evaluation.Pack, l.Number),
		l.Resume != nil && !v.choose(l.Resume.Pack, l.Number):
	case l.Step != nil:
		v.step(l.Step, l.Number)
	case l.Evaluation != nil:
		v.evaluation(l.Evaluation, l.Number)
	case l.Resume != nil:
		v.resume(l.Resume, l.Number)
	}
}

// iteration checks a turn of a loop that made no step: turns of a loop follow each other, and so do loops.
func (v *verifier) iteration(it *driver.LogIteration, line int) {
	before := v.turn
	v.turn = *it
	follows := it.Loop == before.Loop && it.Iteration == before.Iteration+1 && it.TookNs >= before.TookNs ||
		it.Loop > before.Loop && it.Iteration >= 1
	v.fact(follows, whole, it.Iteration, line, "iteration %d of loop %d comes after iteration %d of loop %d",
		it.Iteration, it.Loop, before.Iteration, before.Loop)
	v.spread(it.Values, it.Iteration, line)
	v.tick.turned(line, it.Loop, it.Iteration, it.Values)
}

// spread checks that workers on tables were no further from each other than their tables allow.
func (v *verifier) spread(values map[string]float64, iteration, line int) {
	slack, bounded := values["slack"]
	if !bounded {
		return
	}
	for _, name := range []string{"clocks_ahead", "clocks_stale"} {
		v.fact(values[name] <= slack, stale, iteration, line, "%s is %v, the slack %v", name, values[name], slack)
	}
}

func (v *verifier) resume(r *driver.LogResume, line int) {
	v.fact(len(r.Merged) == len(v.total), whole, r.Step, line, "%d ledger entries, %d splits", len(r.Merged),
		len(v.total))
	v.fact(len(r.Cursor) == len(v.total), whole, r.Step, line, "%d cursors, %d splits", len(r.Cursor), len(v.total))
	for i := range min(len(r.Cursor), len(r.Merged), len(v.total)) {
		want := v.cursor(r.Merged[i], v.rows[i])
		v.fact(r.Cursor[i] == want, cursors, r.Step, line, "split %d goes on at cursor %d, the rows merged end at %d",
			i, r.Cursor[i], want)
	}
	if v.steps > 0 { // it goes on from a step of this log
		v.fact(r.Step == v.steps, whole, r.Step, line, "it resumes from step %d after step %d", r.Step, v.steps)
		v.fact(slices.Equal(r.Merged, v.total), merged, r.Step, line,
			"it resumes with a ledger that its steps do not add up to")
	}
	v.steps = r.Step
	v.goesOn(r, line)
	copy(v.total, r.Merged)
	clear(v.lastAttempt) // attempts are counted by each process of a job; epochs continue
}

// shaped reports whether the arrays of a line are over the splits.
func (v *verifier) shaped(step, line int, lens ...int) bool {
	ok := true
	for _, n := range lens {
		ok = ok && n == len(v.rows)
	}
	v.fact(ok, whole, step, line, "an array does not have %d entries", len(v.rows))
	return ok
}

func (v *verifier) step(s *driver.LogStep, line int) {
	v.steps++
	v.fact(s.Step == v.steps, whole, s.Step, line, "step %d follows step %d", s.Step, v.steps-1)
	v.steps = s.Step
	v.worked(line, s.C, s.Phases.Compute+s.Phases.Collect, v.decidedStep(s, line))
	if !v.shaped(s.Step, line, len(s.C), len(s.Folded), len(s.Attempt), len(s.Epoch), len(s.Cursor)) {
		return
	}
	missing := v.missing(s.Missing, s.Step, line)
	for i := range s.C {
		v.split(s, i, missing[i], line)
	}
	if v.options.Sync == abss.Automatic.String() {
		v.fact(s.Ratio > 0 && s.Ratio <= 1, coverage, s.Step, line, "ratio %v, outside of (0, 1]", s.Ratio)
	}
	v.share(s, missing, line)
	v.waits(s.Waits, s.Step, line)
	v.placement(s, line)
}

func (v *verifier) missing(list []int, step, line int) map[int]bool {
	out := map[int]bool{}
	for _, i := range list {
		v.fact(i >= 0 && i < len(v.rows) && !out[i], whole, step, line, "missing split %d", i)
		out[i] = true
	}
	return out
}

// limit returns how many rows of a split a step folds when it is not cut.
func (v *verifier) limit(s *driver.LogStep, i int) int64 {
	n := v.rows[i]
	f := v.options.BatchFraction
	if s.Batch > 0 {
		f = s.Batch
	}
	if f > 0 && f < 1 {
		return min(n, int64(math.Ceil(f*float64(n))))
	}
	return n
}

// mustBeWhole reports whether no step may leave a row out.
func (v *verifier) mustBeWhole() bool {
	policy, err := abss.ParsePolicy(v.options.Sync)
	return err == nil && policy.Whole()
}

// ratio returns the synchronization ratio of a step.
func (v *verifier) ratio(s *driver.LogStep) float64 {
	if v.options.Sync == abss.Automatic.String() {
		return s.Ratio
	}
	return v.options.Ratio
}

// cursor returns where a split of n rows is to go on after the given number has been merged.
func (v *verifier) cursor(merged, n int64) int64 {
	if !v.options.Cursor || n <= 0 {
		return 0
	}
	return merged % n
}

func (v *verifier) split(s *driver.LogStep, i int, missing bool, line int) {
	c, n := s.C[i], v.rows[i]
	v.fact(c == s.Folded[i], merged, s.Step, line, "split %d: the ledger merged %d rows, the accumulator folded %d", i,
		c, s.Folded[i])
	v.fact(c >= 0 && c <= v.limit(s, i), merged, s.Step, line, "split %d of %d rows merged %d", i, n, c)
	v.fact(!missing || c == 0, merged, s.Step, line, "split %d is missing but merged %d rows", i, c)
	want := v.cursor(v.total[i], n)
	v.fact(s.Cursor[i] == want, cursors, s.Step, line, "split %d starts at %d, the rows merged before end at %d", i,
		s.Cursor[i], want)
	if v.mustBeWhole() || (v.ratio(s) >= 1 && !missing) {
		v.fact(c == v.limit(s, i), bspWhole, s.Step, line, "split %d merged %d of %d rows", i, c, v.limit(s, i))
	}
	if s.Cut && !missing {
		made, all := v.progress(s, i)
		floor := min(all, max(v.options.MinRows, int64(v.options.MinShare*float64(all))))
		v.fact(made >= floor, coverage, s.Step, line, "split %d was cut at %d, below the floor of %d", i, made, floor)
	}
	if !missing {
		v.attempt(s.Attempt[i], s.Epoch[i], i, s.Step, line)
	}
	v.total[i] += c
}

// attempt checks that an output is merged once: attempts of a split only
// grow, and no (split, attempt, epoch) comes back.
func (v *verifier) attempt(attempt int, epoch uint64, i, step, line int) {
	if epoch > v.lastEpoch[i] || v.merged[i] == nil { // no later one can be of an earlier epoch
		v.merged[i] = map[int]bool{}
	}
	v.fact(epoch != v.lastEpoch[i] || !v.merged[i][attempt], once, step, line,
		"split %d attempt %d epoch %d was merged before", i, attempt, epoch)
	v.merged[i][attempt] = true
	v.fact(attempt > v.lastAttempt[i], once, step, line, "split %d attempt %d follows attempt %d", i, attempt,
		v.lastAttempt[i])
	v.lastAttempt[i] = max(v.lastAttempt[i], attempt)
	v.fact(epoch >= v.lastEpoch[i], once, step, line, "split %d epoch %d follows epoch %d", i, epoch, v.lastEpoch[i])
	v.lastEpoch[i] = max(v.lastEpoch[i], epoch)
}

// byEntries reports whether a step counts its progress in entries.
func (v *verifier) byEntries(s *driver.LogStep) bool {
	return len(s.Entries) == len(v.rows) && len(v.entries) == len(v.rows)
}

// progress returns a step's progress in a split, and the split's total: rows, or,
// where it counts these, their entries.
func (v *verifier) progress(s *driver.LogStep, i int) (made, all int64) {
	if v.byEntries(s) {
		return s.Entries[i], v.entries[i]
	}
	return s.C[i], v.limit(s, i)
}

// allProgress returns all the progress that steps like this one can make, with what
// they leave out on purpose.
func (v *verifier) allProgress(s *driver.LogStep) (n int64) {
	if !v.byEntries(s) {
		return v.n
	}
	for _, e := range v.entries {
		n += e
	}
	return n
}

func (v *verifier) share(s *driver.LogStep, missing map[int]bool, line int) {
	var rows, all, gone int64
	var present, inverse float64
	counts := v.counts(s, line)
	v.fact(v.byEntries(s) || s.Entries == nil, whole, s.Step, line, "%d counts of entries, %d splits", len(s.Entries),
		len(v.rows))
	for i, c := range s.C {
		made, most := v.progress(s, i)
		v.fact(made >= 0 && made <= most && (c > 0 || made == 0) && (c < v.rows[i] || made == most), merged, s.Step,
			line,
			"split %d: %d of %d rows are a progress of %d of %d", i, c, v.rows[i], made, most)
		rows += made
		all += most
		if missing[i] {
			gone += most
		}
		if v.present(s, i) {
			present += counts[i]
		}
	}
	for i, c := range s.C {
		if v.present(s, i) {
			w := counts[i] / present
			inverse += w * w / float64(c)
		}
	}
	v.fact(near(s.Share, float64(rows)/float64(max(1, v.allProgress(s)))), derived, s.Step, line,
		"share %v, the counts give %v", s.Share, float64(rows)/float64(max(1, v.allProgress(s))))
	neff := 0.0
	if present > 0 {
		neff = 1 / inverse
	}
	v.fact(near(s.NEff, neff), derived, s.Step, line, "N_eff %v, the counts give %v", s.NEff, neff)
	if len(missing) == 0 && v.options.Sync != "deadline" {
		v.fact(float64(rows) >= v.ratio(s)*float64(all)*(1-1e-12) || v.mustBeWhole(), coverage, s.Step, line,
			"%d of %d, less than the ratio %v, with no split missing", rows, all, v.ratio(s))
	}
	v.fact(rows <= all, coverage, s.Step, line, "%d of %d", rows, all)
	// owners change at a step's beginning and by its losses
	held := max(v.largestShare(s, v.owners), v.largestShare(s, s.Placement))
	v.fact(float64(gone) <= max(v.options.MaxMissing, 1/float64(max(1, v.options.Executors)),
		held)*float64(all)*(1+1e-12),
		coverage, s.Step, line, "%d of %d missing", gone, all)
}

// byWeights reports whether a step goes by rows' weights.
func (v *verifier) byWeights(s *driver.LogStep) bool {
	return len(s.Weight) == len(v.rows) && len(v.weights) == len(v.rows)
}

// present reports whether a split has a part in a step's means.
func (v *verifier) present(s *driver.LogStep, i int) bool {
	return s.C[i] > 0 && (!v.byWeights(s) || s.Weight[i] > 0)
}

// counts returns what each split counts for in means: its rows, or, of a step that
// goes by their weights, what they weigh; those merged weigh no more.
func (v *verifier) counts(s *driver.LogStep, line int) []float64 {
	weighs := v.byWeights(s)
	v.fact(weighs || s.Weight == nil, whole, s.Step, line, "%d weights, %d splits", len(s.Weight), len(v.rows))
	out := make([]float64, len(v.rows))
	for i, n := range v.rows {
		out[i] = float64(n)
		if !weighs {
			continue
		}
		out[i] = v.weights[i]
		slack := 1e-9 * out[i]
		v.fact(s.Weight[i] >= 0 && s.Weight[i] <= out[i]+slack && (s.C[i] < n || s.Weight[i] >= out[i]-slack), merged,
			s.Step, line,
			"split %d: %d of %d rows weigh %v, all of them %v", i, s.C[i], n, s.Weight[i], out[i])
	}
	return out
}

// largestShare returns the largest share of all progress that one executor's splits
// were, as far as the log has said.
func (v *verifier) largestShare(s *driver.LogStep, owners []int) float64 {
	held := map[int]int64{}
	var most int64
	for i, o := range owners[:min(len(owners), len(v.rows))] {
		n := v.rows[i]
		if v.byEntries(s) {
			n = v.entries[i]
		}
		held[o] += n
		most = max(most, held[o])
	}
	return float64(most) / float64(max(1, v.allProgress(s)))
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(b)) }

func (v *verifier) waits(waits []abss.Wait, step, line int) {
	for _, w := range waits {
		bound := time.Duration(v.options.StepTimeoutNs)
		v.fact(w.Bound > 0 && w.Bound <= max(bound, w.Since+w.Took+time.Duration(v.options.GraceNs)), bounded, step,
			line,
			"the wait for %s has the bound %v", w.For, w.Bound)
		v.fact(w.Took >= 0 && w.Took <= w.Bound+timerSlack, bounded, step, line,
			"the wait for %s took %v of at most %v", w.For, w.Took, w.Bound)
	}
}

func (v *verifier) placement(s *driver.LogStep, line int) {
	if s.Placement == nil {
		return
	}
	v.fact(len(s.Placement) == len(v.rows), whole, s.Step, line, "placement of %d splits", len(s.Placement))
	for i, o := range s.Placement {
		v.fact(o >= -1 && o < len(s.Executors), whole, s.Step, line, "split %d is with executor %d of %d", i, o,
			len(s.Executors))
	}
	v.owners = s.Placement
}

func (v *verifier) evaluation(e *driver.LogEvaluation, line int) {
	v.evaluations++
	if e.Commit != nil {
		v.spread(e.Commit.Values, e.Commit.Iteration, line)
		v.tick.turned(line, e.Commit.Loop, e.Commit.Iteration, e.Commit.Values)
	}
	if did := v.decidedPass(e, line); e.Work {
		v.worked(line, e.C, e.TookNs, did)
	}
	if !v.shaped(v.steps, line, len(e.C), len(e.Folded), len(e.Attempt), len(e.Epoch)) {
		return
	}
	for i, c := range e.C {
		v.fact(c == e.Folded[i], merged, v.steps, line, "split %d: %d rows reported, %d folded", i, c, e.Folded[i])
		v.fact(c == v.rows[i], bspWhole, v.steps, line, "split %d: the pass covered %d of %d rows", i, c, v.rows[i])
		v.attempt(e.Attempt[i], e.Epoch[i], i, v.steps, line)
	}
	v.fact(len(e.Missing) == 0, bspWhole, v.steps, line, "%d splits are missing from a whole pass", len(e.Missing))
	v.waits(e.Waits, v.steps, line)
}

func (v *verifier) footer() {
	f := v.l.Footer
	last := v.lines + 2
	v.fact(f != nil || v.l.followed, whole, v.steps, last, "the footer is missing: the log is not whole")
	v.r.Steps = v.steps
	if f == nil {
		return
	}
	v.fact(f.Steps == v.trained, whole, v.steps, last, "the footer counts %d steps, there are %d", f.Steps, v.trained)
	v.fact(f.Evaluations == v.evaluations, whole, v.steps, last, "the footer counts %d evaluations, there are %d",
		f.Evaluations, v.evaluations)
	v.fact(f.Lines == v.l.count, whole, v.steps, last, "the footer counts %d lines, there are %d", f.Lines, v.l.count)
	v.fact(f.SHA256 == v.l.digest, whole, v.steps, last, "the log's digest is %s, its footer says %s",
		short(v.l.digest), short(f.SHA256))
}

func short(s string) string { return s[:min(12, len(s))] }
