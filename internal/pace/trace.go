package pace

import (
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"sort"
	"strconv"
	"time"
)

// Traced is a speed of an executor from a time on.
type Traced struct {
	Executor int
	From     time.Duration
	Speed    float64 // times that of the law
}

var traceHeader = []string{"executor", "seconds", "speed"}

// WriteTrace writes speeds as the law trace:FILE reads them.
func WriteTrace(w io.Writer, all []Traced) error {
	out := csv.NewWriter(w)
	_ = out.Write(traceHeader) // Flush keeps the error
	for _, t := range all {
		_ = out.Write([]string{strconv.Itoa(t.Executor), strconv.FormatFloat(t.From.Seconds(), 'f', 6, 64),
			strconv.FormatFloat(t.Speed, 'g', 6, 64)})
	}
	out.Flush()
	return out.Error()
}

// trace is speeds that were measured; the last of an executor stays.
type trace [][]Traced

func readTrace(path string) (trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := csv.NewReader(f)
	in.FieldsPerRecord = len(traceHeader)
	records, err := in.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(records) < 2 || fmt.Sprint(records[0]) != fmt.Sprint(traceHeader) {
		return nil, fmt.Errorf("%s is no trace: its first line is not executor,seconds,speed, or nothing follows", path)
	}
	var t trace
	for i, r := range records[1:] {
		one, err := parseTraced(r)
		if err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", path, i+2, err)
		}
		for len(t) <= one.Executor {
			t = append(t, nil)
		}
		t[one.Executor] = append(t[one.Executor], one)
	}
	for e, own := range t {
		if len(own) == 0 {
			return nil, fmt.Errorf("%s says nothing of executor %d", path, e)
		}
		sort.SliceStable(own, func(i, j int) bool { return own[i].From < own[j].From })
	}
	return t, nil
}

// mostTraced is how many executors a trace may have.
const mostTraced = 10000

func parseTraced(r []string) (t Traced, err error) {
	if t.Executor, err = strconv.Atoi(r[0]); err != nil || t.Executor < 0 || t.Executor >= mostTraced {
		return t, fmt.Errorf("%q is no executor's number", r[0])
	}
	from, err := strconv.ParseFloat(r[1], 64)
	if err != nil || !(from >= 0 && from < forever.Seconds()/2) {
		return t, fmt.Errorf("%q is no time in seconds", r[1])
	}
	t.From = seconds(from)
	t.Speed, err = positive(r[2])
	return t, err
}

func (t trace) at(w who, now, _ time.Duration) (float64, time.Duration) {
	own := t[w.executor%len(t)]
	k := sort.Search(len(own), func(i int) bool { return own[i].From > now })
	until := forever
	if k < len(own) {
		until = own[k].From
	}
	return own[max(0, k-1)].Speed, until
}

// mean returns the mean of an executor's speeds, over the time that they are known for.
func (t trace) mean(executor int) float64 {
	own := t[executor%len(t)]
	begin, end := own[0].From, own[len(own)-1].From
	if begin == end {
		return own[0].Speed
	}
	sum := 0.0
	for i, s := range own[:len(own)-1] {
		sum += float64(s.Speed * (own[i+1].From - s.From).Seconds())
	}
	return sum / (end - begin).Seconds()
}

func (t trace) shape() (executors, slots int) { return len(t), 0 }
