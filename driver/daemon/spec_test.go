package daemon

import (
	"reflect"
	"testing"
	"time"
)

// TestASpecOutlivesTheDriver: whatever was submitted, the next driver has it as the journal does. A field that is new
// is not forgotten here: each must be filled in.
func TestASpecOutlivesTheDriver(t *testing.T) {
	restarts := uint32(0)
	spec := JobSpec{Kind: "logistic", Args: []string{"--reg=1"}, Token: "secret", Pool: "p", Weight: 3,
		Program: "digest", ProgramArgs: []string{"--x"}, ProgramDir: "/home", Signed: []byte("signed"),
		Owner:    "submit/alice",
		Priority: 7,
		Timeout:  time.Hour, Restarts: &restarts}
	all := reflect.ValueOf(spec)
	for n := range all.NumField() {
		if all.Field(n).IsZero() {
			t.Errorf("%s is not tried", all.Type().Field(n).Name)
		}
	}
	w := &jobHandle{token: spec.Token, info: infoOf("job-000001", &spec)}
	if got := w.spec(); !reflect.DeepEqual(got, spec) {
		t.Errorf("submitted was\n%+v\nand the next driver has\n%+v", spec, got)
	}
}
