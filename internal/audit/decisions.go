package audit

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/plan"
)

// A log has the job's events and its options: a job that is fed the same events under the
// same options must make the decisions in every line.

// span is when a step began and ended, by the job's clock.
type span struct{ from, to plan.Time }

// retell begins a replay of the log's events.
func (v *verifier) retell() {
	v.options = v.h.Options
	cfg, exact, ok := v.configOf(v.h.Options, 1)
	if !ok {
		return
	}
	v.retelling = driver.NewRetelling(cfg, exact)
	v.retelling.Describe(v.h.N, v.h.Weights, v.h.Entries)
}

// configOf returns the job options that the log's stand for, and whether its clock was never late.
func (v *verifier) configOf(o driver.LogOptions, line int) (cfg driver.JobConfig, exact, ok bool) {
	cfg, err := o.Config()
	v.fact(err == nil, whole, v.steps, line, "invalid options: %v", err)
	v.fact(o.Clock == "real" || o.Clock == "virtual", whole, v.steps, line,
		"unknown clock %q", o.Clock)
	cfg.Fingerprint = v.h.Plan
	return cfg, o.Clock == "virtual", err == nil
}

// goesOn notes the state that a pack continues from, and the options of the next process
// of the job.
func (v *verifier) goesOn(r *driver.LogResume, line int) {
	v.leftOut, v.next = false, &r.Options
	v.fact(!slices.Contains(v.resumes, r.Pack), decided, r.Step, line, "pack %d is said to be resumed twice", r.Pack)
	v.resumes = append(v.resumes, r.Pack)
	cfg, exact, ok := v.configOf(r.Options, line)
	if v.retelling == nil || !ok || len(r.Cursor) != len(r.Merged) {
		v.retelling = nil
		return
	}
	v.retelling.Under(cfg, exact)
	v.retelling.ResumedAt(r)
}

// reported feeds the job a line's reports, and returns the step that ends with them: nil where
// there is none.
func (v *verifier) reported(r driver.LogReports, line int) *driver.StepReport {
	v.resumes = nil
	v.leftOut = v.leftOut || r.LeftOut
	if v.retelling == nil || v.leftOut {
		v.r.Undecided++
		v.resumed(true, line)
		return nil
	}
	lives := v.retelling.Lives()
	steps, err := v.retelling.Tell(r.Reports)
	v.fact(err == nil, decided, v.steps, line, "%v", err)
	if err != nil {
		v.retelling = nil // its decisions from now on mean nothing
		return nil
	}
	began := v.retelling.Lives() - lives
	v.fact(began == 0 || v.r.Decided == 0 || v.next != nil, decided, v.steps, line,
		"the job restarted here, but the log has no resume line")
	v.fact(v.retelling.Awaits() == 0, decided, v.steps, line, "a pack is said to be resumed, the reports do not say so")
	v.resumed(began > 0, line)
	for _, s := range steps[:len(steps)-1] { // those before the first step of a process have no lines
		v.fact(began > 0 && !s.Train, decided, v.steps, line, "the reports are of a step, or a pass, that has no line")
	}
	slots := v.retelling.Slots()
	for _, id := range slices.Sorted(maps.Keys(slots)) {
		v.fact(v.options.Slots == 0 || slots[id] == v.options.Slots, decided, v.steps, line,
			"%s has %d slots, the options say %d", id, slots[id], v.options.Slots)
	}
	v.r.Decided++
	last := steps[len(steps)-1]
	v.updated(last, began > 0, line)
	v.r.spans[line] = span{last.Began, last.Began + last.Took}
	for e, rate := range last.Latest {
		v.r.Speeds = append(v.r.Speeds, Speed{e, last.Began + last.Took, rate})
	}
	if v.l.followed {
		v.r.told[line] = last
	}
	return last
}

// updated bounds how long the parameters of the step before can have taken, by its line, with
// when the next began: they are settled before that, beside the passes between the two.
func (v *verifier) updated(next *driver.StepReport, anew bool, line int) {
	if !next.Train && !anew {
		v.ended += next.Took
		return
	}
	between := int64(next.Began - v.ended)
	v.fact(anew || v.update <= between, decided, v.steps, line,
		"update: the step before says %d, the next began after %d", v.update, between)
	v.ended, v.update = next.Began+next.Took, 0
}

// resumed takes over the options of a resume line, where a process of the job has begun;
// where none has, another pack is resumed under the same.
func (v *verifier) resumed(began bool, line int) {
	if v.next == nil {
		return
	}
	v.fact(began || *v.next == v.options, decided, v.steps, line,
		"a line of resumption has other options, and the job has not begun anew")
	v.options, v.next = *v.next, nil
}

// decidedStep compares a step's line with what its reports give, and returns that; nil where it has none.
func (v *verifier) decidedStep(s *driver.LogStep, line int) *driver.StepReport {
	r := v.reported(s.LogReports, line)
	if r == nil || !v.sameKind(r, true, line) {
		return nil
	}
	v.fact(s.Phases.Update >= 0, decided, v.steps, line, "update: the line says %d", s.Phases.Update)
	v.update = s.Phases.Update
	want, got := driver.StepLine(r), *s
	got.Phases.Update, got.Event, got.LogReports = 0, want.Event, want.LogReports
	got.Iteration, got.Loop, got.Values, got.Params = 0, 0, nil, plan.Digest{} // which replay compares
	v.same(want, &got, line)
	return r
}

// decidedPass compares the line of an evaluation pass with what its reports give, and returns that; nil where it has
// none.
func (v *verifier) decidedPass(e *driver.LogEvaluation, line int) *driver.StepReport {
	r := v.reported(e.LogReports, line)
	if r == nil || !v.sameKind(r, false, line) {
		return nil
	}
	want, got := driver.EvaluationLine(r, e.Params), *e
	got.Event, got.LogReports = want.Event, want.LogReports
	got.Iteration, got.Objective, got.Commit = 0, nil, nil // which replay compares
	v.same(want, &got, line)
	return r
}

func (v *verifier) sameKind(r *driver.StepReport, train bool, line int) bool {
	v.fact(r.Train == train, decided, v.steps, line, "its reports are those of another kind of step")
	return r.Train == train
}

// same compares two lines field by field.
func (v *verifier) same(want, got any, line int) {
	w, g := reflect.ValueOf(want).Elem(), reflect.ValueOf(got).Elem()
	for i := range w.NumField() {
		f := w.Type().Field(i)
		if equal(w.Field(i), g.Field(i)) {
			v.r.Facts++
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		a, b := shownField(w.Field(i)), shownField(g.Field(i))
		v.fact(a == b, decided, v.steps, line, "%s: the log has %s, recomputed from the reports: %s", name, b, a)
	}
}

// equal reports whether two values of a type are the same: an empty list is none.
func equal(a, b reflect.Value) bool {
	switch {
	case a.CanInt():
		return a.Int() == b.Int()
	case a.CanUint():
		return a.Uint() == b.Uint()
	case a.CanFloat():
		return a.Float() == b.Float()
	}
	switch a.Kind() {
	case reflect.String:
		return a.String() == b.String()
	case reflect.Slice, reflect.Array:
		same := a.Len() == b.Len()
		for i := 0; same && i < a.Len(); i++ {
			same = equal(a.Index(i), b.Index(i))
		}
		return same
	case reflect.Struct:
		same := true
		for i := 0; same && i < a.NumField(); i++ {
			same = equal(a.Field(i), b.Field(i))
		}
		return same
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

// shownField returns a field as it is compared: an empty list is none.
func shownField(f reflect.Value) string {
	if f.Kind() == reflect.Slice && f.Len() == 0 {
		return "[]"
	}
	return fmt.Sprintf("%+v", f.Interface())
}
