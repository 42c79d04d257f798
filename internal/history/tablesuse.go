package history

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/volley-engine/volley/driver"
	"github.com/volley-engine/volley/internal/audit"
)

// Use is what workers on parameter tables have done, in all loops of a run.
type Use struct {
	driver.LogTables
	Numbers []int `json:"numbers"` // of Workers
}

// How many workers and tables are told of: of more, the workers that are furthest behind, and the first tables.
const (
	mostWorkers = 1024
	mostTables  = 64
)

// turn notes an iteration's loop, where it is said: iterations of several are counted on.
func (f *Following) turn(loop, iteration int) int {
	if loop != 0 && loop != f.loop {
		if f.loop != 0 {
			f.base += f.turned
		}
		if f.ofLoop != nil {
			f.earlier, f.ofLoop = &joined(f.earlier, f.ofLoop).LogTables, nil
		}
		f.loop = loop
	}
	f.turned = iteration
	return f.base + iteration
}

// resumed notes that a process has gone on with the job: in the same loop, but what its workers do is counted from the
// beginning again. Their clocks are not.
func (f *Following) resumed() {
	if f.ofLoop == nil {
		return
	}
	all, before := &joined(f.earlier, f.ofLoop).LogTables, f.earlier
	all.Clock = 0
	if before != nil {
		all.Clock = before.Clock
	}
	for k := range all.Workers {
		if all.Workers[k][1] = 0; before != nil && k < len(before.Workers) {
			all.Workers[k][1] = before.Workers[k][1]
		}
	}
	f.earlier, f.ofLoop = all, nil
}

// used notes what workers on tables have done, beside what they did in earlier loops. Of a log that is not verified it
// may be anything.
func (f *Following) used(l *driver.LogTables) {
	if !audit.Verifies(f.run.Version) {
		return
	}
	for i := range l.Executors {
		l.Executors[i].Name = printable(l.Executors[i].Name)
	}
	for i := range l.Tables {
		l.Tables[i].Name = printable(l.Tables[i].Name)
	}
	f.ofLoop = l
	f.run.Used = joined(f.earlier, l)
	f.run.Used.thin()
	if len(f.run.Executors) > 0 {
		return
	}
	names := []string{}
	for _, e := range l.Executors {
		names = append(names, e.Name)
	}
	f.known(names, f.run.Lost)
}

// joined returns what was done in a loop and, where it was by as many workers on the same tables, in those before.
func joined(before, l *driver.LogTables) *Use {
	u := &Use{LogTables: *l}
	u.Executors, u.Workers, u.Tables = slices.Clone(l.Executors), slices.Clone(l.Workers), slices.Clone(l.Tables)
	for k := range u.Workers {
		u.Numbers = append(u.Numbers, k)
	}
	if before == nil || len(before.Workers) != len(l.Workers) || !slices.EqualFunc(before.Tables, l.Tables,
		func(a, b driver.LogTable) bool { return a.Name == b.Name }) {
		return u
	}
	u.Clock = int(sum(int64(u.Clock), int64(before.Clock)))
	for k := range u.Workers {
		for i := 1; i < len(u.Workers[k]); i++ { // but where it is
			u.Workers[k][i] = sum(u.Workers[k][i], before.Workers[k][i])
		}
	}
	for k := range u.Tables {
		t, b := &u.Tables[k], &before.Tables[k]
		t.Reads, t.Sent, t.Waits = sums(t.Reads, b.Reads), sums(t.Sent, b.Sent), sum(t.Waits, b.Waits)
	}
	for k := range u.Executors {
		e := &u.Executors[k]
		for _, b := range before.Executors {
			if b.Name == e.Name {
				e.BusyNs, e.WaitedNs = sum(e.BusyNs, b.BusyNs), sum(e.WaitedNs, b.WaitedNs)
			}
		}
	}
	u.HelpingBytes, u.StateBytes = sum(u.HelpingBytes, before.HelpingBytes), sum(u.StateBytes, before.StateBytes)
	return u
}

// sums adds up numbers of two lists of one length.
func sums(a, b []int64) []int64 {
	out := slices.Clone(a)
	for i := range min(len(a), len(b)) {
		out[i] = sum(a[i], b[i])
	}
	return out
}

// thin leaves workers and tables out where they are many.
func (u *Use) thin() {
	if u.Tables = u.Tables[:min(len(u.Tables), mostTables)]; len(u.Workers) <= mostWorkers {
		return
	}
	slices.SortFunc(u.Numbers, func(a, b int) int { return cmp.Or(behind(u.Workers[a], u.Workers[b]), a-b) })
	kept := []driver.LogWorker{}
	u.Numbers = u.Numbers[:mostWorkers]
	for _, k := range u.Numbers {
		kept = append(kept, u.Workers[k])
	}
	u.Workers = kept
}

// behind orders workers by how many clocks they have finished, and of as many by how long they have worked.
func behind(a, b driver.LogWorker) int {
	return cmp.Or(cmp.Compare(a[1], b[1]), cmp.Compare(b[2], a[2]))
}

// printable returns a text that others have chosen, as a page or a terminal may show it.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}
