package row

import (
	"strings"
	"testing"
)

// TestTypesHaveTheNamesThatUsersKnow: of the packages behind the aliases of package rdd a
// message shows nothing.
func TestTypesHaveTheNamesThatUsersKnow(t *testing.T) {
	const rdd = "github.com/volley-engine/volley/rdd"
	for got, want := range map[string]string{
		TypeName[Pair[string, int]]():               rdd + ".rdd.Pair[string,int]",
		TypeName[Pair[int, []Pair[int, bool]]]():    rdd + ".rdd.Pair[int,[]" + rdd + ".Pair[int,bool]]",
		TypeName[[]Pair[int, Malformed]]():          ".[]rdd.Pair[int," + rdd + ".Malformed]",
		TypeName[Malformed]():                       rdd + ".rdd.Malformed",
		TypeName[int]():                             ".int",
		public("arrow.Pair[int]"):                   "arrow.Pair[int]",
		public("exec.CoGrouped[int,row.Malformed]"): "rdd.CoGrouped[int,rdd.Malformed]",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	_, err := CodecOf[Pair[int, chan int]]()
	if err == nil || !strings.HasPrefix(err.Error(), "rdd.Pair[int,chan int].Value: ") {
		t.Errorf("a channel in a pair: %v", err)
	}
}
