package fault

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

func TestEveryKindSurvivesTheWireThroughLayers(t *testing.T) {
	for _, k := range Kinds() {
		err := error(Newf(k, "read", "a.csv line 3", "field 2 is %q", "x").WithHint("fix it"))
		for range 3 {
			err = FromWire(ToWire(fmt.Errorf("layer: %w", err)))
		}
		if KindOf(err) != k {
			t.Errorf("%v became %v", k, KindOf(err))
		}
		want := `read a.csv line 3: field 2 is "x" (fix it)`
		if err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	}
}

func TestPolicyOfEveryKind(t *testing.T) {
	never := map[Kind]bool{UserCode: true, BadInput: true, PlanMismatch: true, StaleEpoch: true, Cancelled: true,
		Usage: true, Unauthorized: true, LostInput: true, HolderLost: true, DriverLost: true}
	for _, k := range Kinds() {
		if got := Policy(k).Retry; got == never[k] {
			t.Errorf("%v: retry %v", k, got)
		}
		if k.String() == "" {
			t.Errorf("kind %d has no name", k)
		}
	}
	if (Policy(kinds+3) != Response{}) {
		t.Error("an unknown kind must not be retried")
	}
}

func TestKindOfPlainErrors(t *testing.T) {
	cases := map[Kind]error{
		Cancelled: fmt.Errorf("x: %w", context.Canceled),
		Timeout:   context.DeadlineExceeded,
		Internal:  errors.New("boom"),
	}
	for want, err := range cases {
		if got := KindOf(err); got != want {
			t.Errorf("%v is %v, want %v", err, got, want)
		}
	}
	if ToWire(nil) != nil || FromWire(nil) != nil {
		t.Error("no error has no wire form")
	}
}
