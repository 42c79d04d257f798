package volley

import (
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/volley-engine/volley/abss"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/prioritizer"
)

// refused checks that an error is of usage and names something.
func refused(t *testing.T, err error, named string) {
	t.Helper()
	if fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), named) {
		t.Errorf("%v, want a usage error that names %q", err, named)
	}
}

func TestDefaultsOfTheEngine(t *testing.T) {
	cfg, err := ParseConfig()
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Executors != runtime.GOMAXPROCS(0) || cfg.Slots != 1 || cfg.Memory != 0 || cfg.DiskBudget != 0 ||
		cfg.Virtual {
		t.Errorf("%+v", cfg)
	}
	j := cfg.Job
	if j.Sync.Policy != abss.Automatic || j.Sync.Ratio != 0.5 || j.FixedCursors || j.ByRows || j.BatchFraction != 1 ||
		j.Exchange.Mode != prioritizer.Rate || j.MaxWait != 10*time.Minute {
		t.Errorf("%+v", j)
	}
}

// TestOptionsReachTheConfiguration, an explicit zero of a share as none, which is below zero there.
func TestOptionsReachTheConfiguration(t *testing.T) {
	cfg, err := ParseConfig("--sync", "absp", "--sync-ratio", "0.25", "--min-share", "0", "--max-missing", "0",
		"--cursor", "off", "--weighting", "rows", "--exchange", "off", "--executors", "3", "--slots", "2",
		"--memory", "4GiB", "--disk", "1.5GB", "--event-log", "x.log")
	if err != nil {
		t.Fatal(err)
	}
	s := cfg.Job.Sync
	if s.Policy != abss.ABSP || s.Ratio != 0.25 || s.MinShare >= 0 || s.MaxMissing >= 0 {
		t.Errorf("%+v", s)
	}
	if !cfg.Job.FixedCursors || !cfg.Job.ByRows || cfg.Executors != 3 || cfg.Slots != 2 || cfg.Memory != 4<<30 ||
		cfg.DiskBudget != 1_500_000_000 || cfg.EventLog != "x.log" {
		t.Errorf("%+v", cfg)
	}
}

func TestOptionsThatAreRefused(t *testing.T) {
	for _, c := range []struct{ args, named string }{
		{"--executors -1", "executors"},
		{"--executors 10001", "executors"},
		{"--slots -1", "slots"},
		{"--sync-ratio 0", "sync-ratio"},
		{"--sync-ratio 1.01", "sync-ratio"},
		{"--sync-ratio NaN", "sync-ratio"},
		{"--min-ratio 0", "min-ratio"},
		{"--min-share 2", "min-share"},
		{"--max-missing -0.1", "max-missing"},
		{"--batch-fraction 0", "batch-fraction"},
		{"--batch-fraction 0.5 --sync absp", "batch-fraction"},
		{"--pace-rate 0", "pace-rate"},
		{"--exchange-threshold 0", "exchange-threshold"},
		{"--exchange-interval 0", "exchange-interval"},
		{"--report-interval -1s", "report-interval"},
		{"--max-wait 0", "max-wait"},
		{"--task-timeout 0", "task-timeout"},
		{"--cursor maybe", "cursor"},
		{"--weighting both", "weighting"},
		{"--clock sun", "clock"},
		{"--clock virtual", "--pace"},
		{"--sync never", "sync"},
		{"--exchange always", "exchange"},
		{"--pace fast", "pace"},
		{"--pace static:1,2 --executors 3", "pace"},
		{"--disk many", "disk"},
		{"--memory 0", "memory"},
		{"--log-level loud", "log-level"},
		{"--no-such-flag", "no-such-flag"},
		{"--slots x", "slots"},
	} {
		_, err := ParseConfig(strings.Fields(c.args)...)
		t.Run(c.args, func(t *testing.T) { refused(t, err, c.named) })
	}
}

// TestAPaceGivesTheCluster its shape, unless a flag does.
func TestAPaceGivesTheCluster(t *testing.T) {
	for _, c := range []struct {
		args             string
		executors, slots int
	}{
		{"--pace static:1,1,0.5", 3, 1},
		{"--pace static:1,1,0.5 --slots 2", 3, 2},
		{"--pace one-straggler", 6, 1},
		{"--executors 5", 5, 1},
	} {
		cfg, err := ParseConfig(strings.Fields(c.args)...)
		if err != nil || cfg.Executors != c.executors || cfg.Slots != c.slots {
			t.Errorf("%s: %d executors of %d slots, %v; want %d of %d", c.args, cfg.Executors, cfg.Slots, err,
				c.executors, c.slots)
		}
	}
}

func TestWhatMayBeLeftOut(t *testing.T) {
	for _, c := range []struct {
		flags       EngineFlags
		cut, sample bool
	}{
		{EngineFlags{sync: "bsp", ratio: 0.5, batchFraction: 1}, false, false},
		{EngineFlags{sync: "steal", ratio: 0.5, batchFraction: 1}, false, false},
		{EngineFlags{sync: "absp", ratio: 0.5, batchFraction: 1}, true, true},
		{EngineFlags{sync: "absp", ratio: 1, batchFraction: 1}, false, false},
		{EngineFlags{sync: "auto", ratio: 1, batchFraction: 1}, false, true},
		{EngineFlags{sync: "auto", ratio: 0.5, batchFraction: 0.1}, false, true},
		{EngineFlags{sync: "bsp", ratio: 0.5, batchFraction: 0.1}, false, true},
	} {
		if cut, sample := c.flags.MayCut(), c.flags.MaySample(); cut != c.cut || sample != c.sample {
			t.Errorf("%+v: cut %v, sample %v", c.flags, cut, sample)
		}
	}
}

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]int64{"": 0, "1": 1, "512B": 512, "4KiB": 4096, "1.5 MiB": 3 << 19, "2KB": 2000,
		"1MB": 1e6, "3GB": 3e9, "1TB": 1e12, "1TiB": 1 << 40, "2GiB": 2 << 30} {
		if got, err := ParseBytes(text); got != want || err != nil {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"0", "-1", "GiB", "4gib", "4 G", "1e30", "NaN", "Inf", "NaNGiB", "0.5", "0.5B",
		"1,5GB"} {
		if got, err := ParseBytes(text); err == nil {
			t.Errorf("%q is taken for %d bytes", text, got)
		}
	}
}

func TestBoundsOfNumbers(t *testing.T) {
	for _, c := range []struct {
		v    float64
		open bool
		ok   bool
	}{{0, false, true}, {0, true, false}, {1, true, true}, {1.5, false, false}, {-0.5, false, false},
		{math.NaN(), false, false}} {
		if err := Within("x", c.v, 0, 1, c.open); (err == nil) != c.ok {
			t.Errorf("%v, open %v: %v", c.v, c.open, err)
		}
	}
	if err := OneOf("x", "b", "a", "b"); err != nil {
		t.Error(err)
	}
	refused(t, OneOf("x", "B", "a", "b"), "a b")
}
