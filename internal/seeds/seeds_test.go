package seeds

import "testing"

func TestSeedsOfASoak(t *testing.T) {
	usual := map[bool]int{true: 10, false: 40}[testing.Short()]
	for soak, want := range map[string]int{"": usual, "many": usual, "39": usual, "41": 41} {
		t.Setenv("VOLLEY_SOAK", soak)
		if got := Of(40); got != want {
			t.Errorf("VOLLEY_SOAK=%q: %d, want %d", soak, got, want)
		}
		if Soaking() != (soak != "") {
			t.Errorf("VOLLEY_SOAK=%q: soaking is %v", soak, Soaking())
		}
	}
}
