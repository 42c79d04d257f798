package audit

import (
	"strings"
	"testing"

	"github.com/volley-engine/volley/driver"
)

// TestALineSaysTheSameToEveryReader: none of its keys is there twice, or in another case.
func TestALineSaysTheSameToEveryReader(t *testing.T) {
	for line, want := range map[string]string{
		`{"event":"step","cut":true,"values":{"f":1,"F":2}}`:          "",
		`{"event":"header","args":{"Reg":1,"In":[{"A":1},{"A":2}]}}`:  "",
		`{"event":"header","args":{"Reg":1,"Reg":2}}`:                 `"Reg" twice`,
		`{"event":"step","cut":false,"cut":true}`:                     `"cut" twice`,
		`{"event":"step","cut":false,"Cut":true}`:                     `"Cut"`,
		`{"event":"step","CUT":true}`:                                 `"CUT"`,
		`{"event":"step","waits":[{"for":"x"},{"for":"x","For":""}]}`: `"For"`,
		`{"event":"step","values":{"f":1,"f":2}}`:                     `"f" twice`,
		`{"event":"footer","stopped_by":"x","Stopped_by":"y"}`:        `"Stopped_by"`,
	} {
		l := &Log{Path: "log"}
		number := 1
		if !strings.Contains(line, "header") {
			l.Header, number = &driver.LogHeader{}, 2
		}
		err := l.take(number, []byte(line+"\n"), "")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}
