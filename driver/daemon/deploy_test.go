package daemon

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// metricNames are in alerts and dashboards.
var metricNames = regexp.MustCompile(`volley_[a-z_]+`)

// TestWhatIsDeployedNamesMetricsThatThereAre: an alert on a metric that no driver has would never fire.
func TestWhatIsDeployedNamesMetricsThatThereAre(t *testing.T) {
	d := testDaemon(t)
	d.audit.refused(auditLine{})
	_, text := get(t, d, "/metrics", nil)
	have := map[string]bool{}
	for _, line := range strings.Split(text, "\n") {
		if f := strings.Fields(line); len(f) > 2 && f[1] == "TYPE" {
			have[f[2]] = true
		}
	}
	for name := range presentMetrics { // some only where there is a job or an executor
		have["volley_"+name] = true
	}
	used := 0
	err := filepath.WalkDir("../../deploy", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		for _, name := range metricNames.FindAllString(string(raw), -1) {
			used++
			base := name
			for _, part := range []string{"_bucket", "_sum", "_count"} {
				base = strings.TrimSuffix(base, part)
			}
			if !have[name] && !have[base] {
				t.Errorf("%s: no driver has %s", path, name)
			}
		}
		return err
	})
	if err != nil || used < 20 {
		t.Error(used, err)
	}
}
