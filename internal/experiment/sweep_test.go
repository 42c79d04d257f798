package experiment

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/volley-engine/volley/internal/pace"
)

// swept prints what runs come to: ssp takes 3 s an iteration after 5 s of its own, flexrr 2 s, and asp fails.
const swept = `n=40; case "$*" in *"--max-iterations 10 "*) n=10;; esac
log=
while [ $# -gt 0 ]; do case "$1" in --event-log) log=$2;; --sync) sync=$2;; esac; shift; done
case $sync in
asp) echo no >&2; exit 1;;
ssp) each=3; last=0.5;;
*) each=2; last=0.4;;
esac
if [ -n "$log" ]; then
	for v in 0.9 0.7 0.5 $last; do echo '{"event":"iteration","values":{"objective":'$v'}}'; done > $log
fi
echo '{"objective":'$last',"train_seconds":'$((5 + n * each))',"iterations":'$n',"rows":16000,"waited_share":0.25,
"helped_share":0.1}'`

// TestASweepTimesIterations: those after the first ten, beside slots that are always busy, and where a way has come to
// what the first one ends with.
func TestASweepTimesIterations(t *testing.T) {
	r, runs := pretend(t, swept)
	s := &Sweep{Title: "t", Jobs: chosenJobs(Size{2000, 5}, "logistic"), Clocks: 40, Reach: true,
		Points: []Point{{"p", alone(4, "rate:1000")}, {"q", alone(4, "rate:1000+slow-worker:100:1")}},
		Ways:   []Way{syncs("a", "ssp"), syncs("b", "flexrr"), syncs("c", "asp")},
		Theirs: map[string]map[string]string{"p": {"b": "nearly Ideal"}}}
	rows, err := s.Run(context.Background(), r)
	if err != nil || len(rows) != 6 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	a, b, c := rows[0], rows[1], rows[2]
	// 16,000 rows by four slots of a thousand a second are 4 s
	if a.Each != 3 || math.Abs(float64(a.Ideal)-0.75) > 1e-4 || a.Idle != 0.25 || a.Reached != 30 || a.Seconds != 90 {
		t.Errorf("a: %+v", a)
	}
	if b.Each != 2 || b.Helped != 0.1 || b.Reached != 30 || b.Seconds != 60 || b.Theirs != "nearly Ideal" {
		t.Errorf("b: %+v", b)
	}
	if len(c.Failed) != 1 || !math.IsNaN(float64(c.Each)) {
		t.Errorf("c: %+v", c)
	}
	if r := rows[3].Ideal; !(r < 0.75 && r > 0.5) {
		t.Errorf("where slots are slowed down Ideal is %v of it", r)
	}
	report := s.Report(rows)
	if len(report.Rows) != 6 || len(report.Charts) != 2 || !slices.Contains(report.Rows[1], "nearly Ideal") {
		t.Errorf("%q", report.Rows)
	}
	for _, run := range runs() {
		if strings.HasPrefix(run, "generate") {
			continue
		}
		if !strings.Contains(run, "--clock virtual") || !strings.Contains(run, "--executors 4") {
			t.Errorf("run %q", run)
		}
	}
}

// TestSweepsAreOfLawsThatAreThere, and ask what volley can answer.
func TestSweepsAreOfLawsThatAreThere(t *testing.T) {
	t.Parallel()
	for name, s := range Sweeps(Size{20_000, 20}, 2) {
		if s.Title == "" || len(s.About) < 2 || len(s.Jobs)*len(s.Points)*len(s.Ways) == 0 || s.Clocks <= untimed {
			t.Errorf("%s: %+v", name, s)
		}
		for _, p := range s.Points {
			for _, law := range p.Law.Paces {
				if _, err := pace.Parse(law, 1000); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
}

// TestObjectivesOfALogThatIsCut are those that are there.
func TestObjectivesOfALogThatIsCut(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte(`{"event":"step","values":{"objective":9}}
{"event":"iteration","values":{"objective":2}}
{"event":"iteration","values":{"step":2}}
{"event":"evaluation","objective":7}
{"event":"evaluation","objective":1.5,"commit":{"n":1}}
{"event":"itera`), 0o600); err != nil {
		t.Fatal(err)
	}
	if all, err := objectivesOf(path); err != nil || !slices.Equal(all, []float64{2, 1.5}) {
		t.Errorf("%v, %v", all, err)
	}
	if _, err := objectivesOf(path + ".none"); err == nil {
		t.Error("a log that is not there is read")
	}
}
