package experiment

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// modelled prints what runs come to, by their --sync: one by ssp with slack 3 does not arrive, and one by cap fails.
const modelled = `case "$*" in *"--sync cap"*) echo no >&2; exit 1;; esac
case "$*" in
*"--sync asp"*) echo '{"objective":0.5,"train_seconds":6,"iterations":5,"stopped_by":"target","waited_share":0.25}';;
*"--slack 3"*) echo '{"objective":0.9,"train_seconds":7,"iterations":9,"stopped_by":"max-iterations"}';;
*) echo '{"objective":0.5,"train_seconds":2,"iterations":3,"stopped_by":"target","passes":{"training_rows":264000}}';;
esac`

// TestModelsAreComparedByTheLastWay: what did not arrive has no time, idle is what workers waited or else what Ideal
// leaves, and the paper's ratios stand beside those of the same ways.
func TestModelsAreComparedByTheLastWay(t *testing.T) {
	r, runs := pretend(t, modelled)
	m := NewPetuum(6, 1, Size{Rows: 2000, Features: 5})
	m.Jobs = slices.DeleteFunc(m.Jobs, func(j Job) bool { return j.Name != "logistic" })
	m.Ways = append([]Way{syncs("cap", "cap")}, m.Ways...)
	m.Theirs["physical"]["logistic"] = append([]float64{100}, m.Theirs["physical"]["logistic"]...)
	rows, err := m.Run(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	byWay := map[string]ModelRow{}
	for _, row := range rows {
		byWay[row.Way] = row
	}
	asp, late, absp, failed := byWay["ASP"], byWay["SSP, s=3"], byWay["A-BSP"], byWay["cap"]
	if asp.Seconds.Median != 6 || asp.Ratio != 3 || asp.Idle != 0.25 || asp.Iterations != 5 ||
		math.Abs(float64(asp.Theirs)-472.0/248) > 1e-12 {
		t.Errorf("asp: %+v", asp)
	}
	// twelve slots of 10,000 rows a second, nine of them at speed 2.2: Ideal takes 264000/228000 s
	if !math.IsNaN(late.Seconds.Median) || math.Abs(float64(absp.Idle)-(1-264.0/228/2)) > 1e-9 || absp.Ratio != 1 {
		t.Errorf("late %+v, absp %+v", late, absp)
	}
	if len(failed.Failed) != 1 || !math.IsNaN(failed.Seconds.Median) {
		t.Errorf("failed: %+v", failed)
	}
	report := m.Report(rows)
	if len(report.Rows) != len(m.Ways) || len(report.Charts) != 1 || !slices.Contains(report.Rows[1], "25 %") {
		t.Errorf("%q", report.Rows)
	}
	for _, run := range runs() {
		if strings.Contains(run, "--target") && (!strings.Contains(run, "--max-iterations") ||
			!strings.Contains(run, "--clock virtual")) {
			t.Errorf("run %q", run)
		}
	}
}

// TestANetworkEndsWhereBSPIsAfterThePapersSteps: its runs of tables 5 and 6 step as one another do, and end near what
// bsp has come to.
func TestANetworkEndsWhereBSPIsAfterThePapersSteps(t *testing.T) {
	r, runs := pretend(t, `case "$*" in *"--sync bsp"*) echo '{"objective":1.5,"train_seconds":9,"iterations":51}';;
*) echo '{"objective":1.501,"train_seconds":2,"iterations":53,"stopped_by":"target"}';; esac`)
	m := NewPetuum(5, 1, Size{Rows: 2000, Features: 5})
	m.Jobs = slices.DeleteFunc(m.Jobs, func(j Job) bool { return j.Name != "mlp" })
	rows, err := m.Run(context.Background(), r)
	if err != nil || len(rows) != 4 || rows[3].Seconds.Median != 2 || float64(rows[2].Theirs) != 2061.0/1599 {
		t.Errorf("%+v, %v", rows, err)
	}
	steps := 0
	trainings := slices.DeleteFunc(runs(), func(run string) bool { return !strings.HasPrefix(run, "run ") })
	for _, run := range trainings {
		bsp := strings.Contains(run, "--sync bsp")
		if bsp {
			steps++
		}
		if !strings.Contains(run, "--solver constant --momentum 0") ||
			bsp != strings.Contains(run, "--max-iterations 51") || bsp == strings.Contains(run, "--target 1.5") {
			t.Errorf("run %q", run)
		}
	}
	if steps != 1 || len(trainings) != 5 {
		t.Errorf("%d runs of bsp, of %d", steps, len(trainings))
	}
}

// TestTheTableOfModelsHasEightJobs under three laws, and each way says how.
func TestTheTableOfModelsHasEightJobs(t *testing.T) {
	m := NewModels(Size{Rows: 1000, Features: 5}, 1)
	if len(m.Jobs) != 8 || len(m.Laws) != 3 {
		t.Errorf("%d jobs, %d laws", len(m.Jobs), len(m.Laws))
	}
	seen := map[string]bool{}
	for i := range m.Jobs {
		for _, w := range m.Ways {
			flags := fmt.Sprint(m.Jobs[i].Name, w.Flags(&m.Jobs[i]))
			if seen[flags] || !strings.Contains(flags, "--sync") {
				t.Errorf("%s: %s", w.Name, flags)
			}
			seen[flags] = true
		}
	}
}
