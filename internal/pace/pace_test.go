package pace

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// balanced returns a law for some executors of two slots each, whose balanced pass takes a second.
func balanced(t *testing.T, text string, executors int) *Law {
	t.Helper()
	l, err := Parse(text, 1000)
	if err != nil {
		t.Fatal(err)
	}
	mean := 0.0
	for e := range executors {
		all := 2 * l.rate
		for _, s := range l.speeds {
			all *= s.mean(e)
		}
		mean += all
	}
	l.Balance(int64(math.Round(mean)), executors, 2)
	if pass := time.Duration(l.pass.Load()); (pass - time.Second).Abs() > time.Millisecond {
		t.Fatalf("a balanced pass takes %v", pass)
	}
	return l
}

var lawful = []string{"static:1,2,0.5,1,1,1", "physical", "multi-tenant:7", "one-straggler", "uneven", "delayed:0.5s",
	"delayed:3p", "disrupter:2s:3", "disrupter:0.3p", "slow-worker:400:5", "disrupted:100", "disrupted:300:0.7p:9",
	"power-law:7", "power-law:3:2", "uneven+disrupter:1p", "physical+slow-worker:100+latency:1ms",
	"rate:500+disrupted:50"}

// executorsOf returns a number of executors that a law is for.
func executorsOf(l *Law) int {
	if l.Executors > 0 {
		return l.Executors
	}
	return 8
}

// TestWorkAddsUp under every law: a part done after another ends when both at once do, speeds are none below 0, and
// what holds ends later.
func TestWorkAddsUp(t *testing.T) {
	for _, text := range lawful {
		probe, _ := Parse(text, 1)
		l := balanced(t, text, executorsOf(probe))
		for slot := range 4 {
			var one time.Duration
			for k := range 200 {
				rate, until := l.Rate(slot/2, slot%2, 2, one)
				if !(rate >= 0) || until <= one {
					t.Fatalf("%s: at %v the rate is %v until %v", text, one, rate, until)
				}
				one = l.Spend(slot/2, slot%2, 2, one, int64(1+k%97))
			}
			rows := int64(0)
			for k := range 200 {
				rows += int64(1 + k%97)
			}
			if all := l.Spend(slot/2, slot%2, 2, 0, rows); (all - one).Abs() > 200*time.Microsecond {
				t.Errorf("%s: %d rows take slot %d %v in parts, %v at once", text, rows, slot, one, all)
			}
		}
	}
}

// TestSpeedsHaveTheirMean over a long time: what a balanced pass is reckoned by.
func TestSpeedsHaveTheirMean(t *testing.T) {
	for _, c := range []struct {
		text string
		want float64 // rows per second; 0 is the law's own mean
	}{{"multi-tenant:7", 2500}, {"multi-tenant:8", 2500}, {"uneven", 0}, {"physical", 0}, {"disrupter:1p", 950},
		{"disrupted:100:1p", 900}, {"disrupted:400:0.5s:4", 840}, {"power-law:4", 0}, {"power-law:7:3", 0},
		{"power-law:11", 0}, {"delayed:1p", 1000 * 15.0 / 16}, {"uneven+disrupter:1p", 1900}} {
		probe, _ := Parse(c.text, 1)
		n := executorsOf(probe)
		l := balanced(t, c.text, n)
		rows, want := int64(1e6), 0.0
		speed := 0.0
		for e := range n {
			mean := 1000.0
			for _, s := range l.speeds {
				mean *= s.mean(e)
			}
			want += mean / float64(n)
			speed += float64(rows) / l.Spend(e, 1, 2, 0, rows).Seconds() / float64(n)
		}
		if c.want > 0 {
			want = c.want
		}
		if math.Abs(speed/want-1) > 0.03 {
			t.Errorf("%s: %.0f rows per second, want about %.0f", c.text, speed, want)
		}
	}
}

// TestDelayedSleepsInTurn: executor k in pass k, so that each has one delay in as many passes as there are executors.
func TestDelayedSleepsInTurn(t *testing.T) {
	l := balanced(t, "delayed:500ms", 4)
	for _, c := range []struct {
		executor int
		at       time.Duration
		asleep   bool
	}{{0, 0, true}, {0, 499 * time.Millisecond, true}, {0, 501 * time.Millisecond, false}, {1, 0, false},
		{1, 1501 * time.Millisecond, true}, {1, 2001 * time.Millisecond, false}, {3, 4600 * time.Millisecond, true},
		{0, 6001 * time.Millisecond, true}, {1, 6001 * time.Millisecond, false}} {
		if rate, _ := l.Rate(c.executor, 0, 2, c.at); (rate == 0) != c.asleep {
			t.Errorf("executor %d at %v: rate %v", c.executor, c.at, rate)
		}
	}
	if got := l.Spend(0, 0, 2, 0, 1000); got != 1500*time.Millisecond {
		t.Errorf("a pass with its delay takes %v", got)
	}
}

// TestPowerLawsTail: passes last t times as long with a probability of t to the power of 1 − α.
func TestPowerLawsTail(t *testing.T) {
	p := &powerLaw{alpha: 4, seed: 1, turns: map[int]turn{}}
	const n = 20000
	long := 0
	for k := range uint64(n) {
		if p.turn(3, k, 0, time.Second).times > 2 {
			long++
		}
	}
	if got, want := float64(long)/n, 1.0/8; math.Abs(got-want) > 0.01 {
		t.Errorf("%v last twice as long, want %v", got, want)
	}
	forward, _ := p.at(who{1, 0, 2, 8}, time.Minute, time.Second)
	_, _ = p.at(who{1, 0, 2, 8}, 0, time.Second)
	if again, _ := p.at(who{1, 0, 2, 8}, time.Minute, time.Second); again != forward {
		t.Errorf("at the same time it is %v, then %v", forward, again)
	}
}

// TestSlowWorkersShare: at any time one slot in ten of those that 20 points of 1 % reach for half of two passes.
func TestSlowWorkersShare(t *testing.T) {
	l := balanced(t, "slow-worker:300", 100)
	slow, all := 0, 0
	for e := range 100 {
		for k := range 400 {
			rate, _ := l.Rate(e, 0, 2, 2*time.Second+time.Duration(k)*73*time.Millisecond)
			if rate != 1000 && rate != 250 {
				t.Fatal(rate)
			}
			if all++; rate == 250 {
				slow++
			}
		}
	}
	if got := float64(slow) / float64(all); got < 0.06 || got > 0.14 {
		t.Errorf("%.3f of the time they are slow", got)
	}
}

// TestTenantsAreThoseOfTheTables: values that earlier figures were measured under.
func TestTenantsAreThoseOfTheTables(t *testing.T) {
	l, err := Parse("multi-tenant:7", 1)
	if err != nil {
		t.Fatal(err)
	}
	l.Balance(180, 36, 2)
	for k, want := range []float64{1.17092698, 1.71261905, 2.07748902} {
		if got, _ := l.Rate(5, 1, 2, time.Duration(k)*time.Second); math.Abs(got-want) > 1e-7 {
			t.Errorf("executor 5 in second %d: %.4f, want %.4f", k, got, want)
		}
	}
}

// TestTracesAreReadAsWritten.
func TestTracesAreReadAsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.csv")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	all := []Traced{{0, 0, 1}, {0, 2 * time.Second, 0.5}, {1, 0, 2}}
	if err := WriteTrace(f, all); err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	l := balanced(t, "trace:"+path, 2)
	for _, c := range []struct {
		executor int
		at       time.Duration
		rate     float64
		until    time.Duration
	}{{0, 0, 1000, 2 * time.Second}, {0, 2 * time.Second, 500, forever}, {1, time.Hour, 2000, forever}} {
		if rate, until := l.Rate(c.executor, 0, 2, c.at); rate != c.rate || until != c.until {
			t.Errorf("executor %d at %v: %v until %v", c.executor, c.at, rate, until)
		}
	}
	if err := l.Fits(3, 1); err == nil {
		t.Error("a trace of two executors fits three")
	}
}

// TestNetworks: links in turn, latency, and the driver's own link.
func TestNetworks(t *testing.T) {
	l, err := Parse("link:1MB/s,2MB/s+latency:3ms+driver-link:10MB/s+handling:20MB/s", 1)
	if err != nil || l.Paces() || !l.Computed() {
		t.Fatal(err)
	}
	alone, err := Parse("handling:1MB/s", 1)
	if err != nil || !alone.Computed() || !alone.Handles() || alone.Handling(5e5) != time.Second/2 {
		t.Error(err)
	}
	if a, b := l.Send(0, 0, 1e6, 1e9), l.Send(3, 0, 1e6, 1e9); a != time.Second || b != time.Second/2 {
		t.Error(a, b)
	}
	if l.Latency(time.Second) != 3*time.Millisecond || l.DriverLink(1e6) != 100*time.Millisecond ||
		l.Handling(1e6) != 50*time.Millisecond {
		t.Error(l.Latency(time.Second), l.DriverLink(1e6), l.Handling(1e6))
	}
	var none *Law
	if none.Latency(time.Second) != time.Second || none.DriverLink(5)+none.Handling(5) != 0 || none.Handles() ||
		none.Send(0, 7, 5, 0) != 7 {
		t.Error("no law has a network")
	}
}

// TestLawsThatAreNone are refused, by what is wrong with them.
func TestLawsThatAreNone(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for text, want := range map[string]string{
		"fast": "unknown profile", "static:1,0": `"0" is not a positive`, "static:": "positive", "physical:3": `no "3"`,
		"multi-tenant:x": "seed", "delayed": "length", "delayed:3": "length", "delayed:0p": "multiple",
		"rate:1e-300": "not from", "rate:5+rate:7": "twice",
		"disrupter:1ns":      "10µs",
		"disrupted:50:1e-9p": "multiple", "delayed:1e300p": "multiple", "power-law:2.0000001": "2.05",
		"link:1e-10B/s": "not from", "static:1e-200,1": "not from",
		"disrupter:2s:1:9": `no "9"`, "slow-worker": "percentage", "power-law:2": "2.05 or more", "link:4": "speed of a link",
		"link:1MB/s+link:2MB/s":         "twice",
		"handling:1MB/s+handling:1MB/s": "twice", "handling:0B/s": "positive",
		"latency:-1s": "latency", "rate:NaN": "positive",
		"physical+one-straggler": "12 executors, another for 6", "trace:" + dir + "/none": "no such file",
		"trace:" + put("a", "executor,seconds,speed\n"): "nothing follows", "trace:" + put("b",
			"a,b,c\n1,2,3\n"): "no trace",
		"trace:" + put("c", "executor,seconds,speed\n1,0,1\n"):        "nothing of executor 0",
		"trace:" + put("d", "executor,seconds,speed\n0,0,1\n0,x,1\n"): "line 3",
		"trace:" + put("e", "executor,seconds,speed\n0,0,-1\n"):       "line 2",
		"trace:" + put("f", "executor,seconds,speed\n99999999,0,1\n"): "line 2",
		"trace:" + put("g", "executor,seconds,speed\n0,0,1\n\"0,1,1"): "g:",
	} {
		if l, err := Parse(text, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %q", text, l, err, want)
		}
	}
}

// TestAnExecutorAlone follows laws that need neither the others nor the length of a pass.
func TestAnExecutorAlone(t *testing.T) {
	for text, ok := range map[string]bool{"": true, "rate:5": true, "static:2": true, "disrupter:2s:3+link:1MB/s": true,
		"physical": false, "multi-tenant": false, "disrupter:2p": false, "slow-worker:100": false, "delayed:1s": false,
		"link:1MB/s,2MB/s": false, "latency:1ms": false, "power-law:7": false} {
		l, err := Parse(text, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Alone(); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// FuzzParse: what is read can be asked.
func FuzzParse(f *testing.F) {
	for _, text := range lawful {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "trace") || len(text) > 200 {
			return
		}
		l, err := Parse(text, 1000)
		if err != nil || l == nil {
			return
		}
		l.Balance(1000, 3, 2)
		if rate, until := l.Rate(2, 1, 2, 5*time.Second); rate < 0 || until <= 5*time.Second {
			t.Errorf("%q: %v until %v", text, rate, until)
		}
	})
}
