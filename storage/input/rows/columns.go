package rows

import (
	"strings"

	"github.com/volley-engine/volley/internal/fault"
)

// NoColumn returns the error about a column that does not exist, by the name or number that
// a flag gives.
func NoColumn(path, flag, want string, names []string) error {
	return fault.Newf(fault.Usage, "read", path, "no column %q for --%s; columns are %s", want, flag,
		strings.Join(names[:min(len(names), 40)], " ")).WithHint("set --" + flag + " to a name or a zero-based number")
}

// SameColumn refuses one column for both label and weight.
func SameColumn(path, name string) error {
	return fault.Newf(fault.Usage, "read", path, "column %q is to be both label and weight", name).
		WithHint("--label and --weight-column name them")
}
