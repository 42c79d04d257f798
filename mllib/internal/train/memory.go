package train

import (
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/memory"
)

// Fits refuses, before work begins, what needs more memory than this process may take (--memory) or the machine has;
// what is that of which there is too much, flag what lowers it.
func Fits(job, flag, what string, bytes float64) error {
	have := float64(memory.MostOfMachine())
	if limit := float64(memory.Limit()); limit > 0 && (have == 0 || limit < have) {
		have = limit
	}
	if have == 0 || bytes <= have {
		return nil
	}
	return fault.Newf(fault.Usage, job, flag, "%s need %.3g GiB, and there are %.3g", what, bytes/(1<<30),
		have/(1<<30)).WithHint("lower it, or run on a cluster or a machine of more memory")
}
