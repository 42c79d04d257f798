package scale

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/volley-engine/volley/abss"
)

func TestAReportOfClusters(t *testing.T) {
	now, told := time.Duration(0), 0
	c := Config{Executors: []int{4, 40}, Policies: []abss.Policy{abss.BSP, abss.Steal}, Splits: 4, Rows: 1000,
		Accumulator: 800, Steps: 2, FanIn: 8, Law: "uneven", Clock: func() time.Duration { now++; return now },
		Progress: func(done, all int) { told = 100*done + all }}
	cells, err := Run(context.Background(), c)
	if err != nil || len(cells) != 8 || told != 808 {
		t.Fatalf("%d cells, %d, %v", len(cells), told, err)
	}
	flat, tree := cells[4], cells[5]
	if flat.Executors != 40 || flat.Parts != 40 || tree.Results != "tree of 8" || tree.Received >= flat.Received ||
		flat.Took < flat.Ideal {
		t.Errorf("flat %+v, tree %+v", flat, tree)
	}
	var text strings.Builder
	if err := c.Report(cells).Markdown(&text); err != nil || strings.Count(text.String(), "\n| 40 | steal |") != 2 {
		t.Errorf("%v\n%s", err, text.String())
	}
	if _, err := Run(context.Background(), Config{Executors: []int{3}, Policies: c.Policies[:1],
		Law: "static:1,1"}); err == nil {
		t.Error("a law for two executors fits three")
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if cells, err := Run(ended, c); err == nil || len(cells) > 0 {
		t.Errorf("%d cells, %v after it was cancelled", len(cells), err)
	}
}
