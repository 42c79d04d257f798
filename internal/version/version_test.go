package version

import (
	"strings"
	"testing"
)

// TestWhoMayWorkTogether tells which processes agree, in which version, and why others do not.
func TestWhoMayWorkTogether(t *testing.T) {
	for _, c := range []struct {
		side Side
		want string
		why  string
	}{
		{Own(), Newest, ""},
		{Side{Oldest: "volley/5"}, "volley/5", ""},
		{Side{"volley/5", "volley/5", "0.1.7"}, "volley/5", ""},
		{Side{"volley/6", "volley/9", "0.3.0"}, "volley/6", ""},
		{Side{"volley/4", "volley/5", "0.1.0"}, "volley/5", ""},
		{Side{Oldest: "volley/4"}, "", "it speaks volley/4 (volley 0.1.0), this process volley/5 to volley/6"},
		{Side{"volley/7", "volley/8", "0.3.0"}, "", "upgrade the older"},
		{Side{"volley/5", "volley/6", "0.9.9"}, "", "it is of volley 0.9.9, this process of 0.2.0"},
		{Side{"volley/5", "volley/6", "1.2.0"}, "", "it is of volley 1.2.0"},
		{Side{"volley/5", "volley/6", "two"}, "", `"two", which is no version`},
		{Side{}, "", "no version of the protocol"},
		{Side{Oldest: "HTTP/1"}, "", "no version of the protocol"},
		{Side{"volley/6", "volley/5", ""}, "", "no version of the protocol"},
	} {
		got, err := c.side.Agree()
		switch {
		case c.why == "" && (err != nil || got != c.want):
			t.Errorf("%+v: %q, %v; want %q", c.side, got, err, c.want)
		case c.why != "" && (err == nil || !strings.Contains(err.Error(), c.why)):
			t.Errorf("%+v: %v; want %q", c.side, err, c.why)
		}
	}
}

// TestTheNewestIsOneBeyondTheOldest keeps an older version of the protocol alive.
func TestTheNewestIsOneBeyondTheOldest(t *testing.T) {
	if !AtLeast(Newest, Oldest) || AtLeast(Oldest, Newest) {
		t.Errorf("%s to %s: an older version must be spoken", Oldest, Newest)
	}
}
