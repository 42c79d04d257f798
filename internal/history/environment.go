package history

import (
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"slices"
	"strings"

	"github.com/volley-engine/volley/driver"
)

// Setting is one of what a run was made under.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// How much is kept of what a run was made under.
const (
	mostSettings = 400
	mostSetting  = 300 // letters of a value
)

// environment returns what a log's header says that a run was made under: programs, the machine, the engine's options
// and the job's arguments.
func environment(h *driver.LogHeader) []Setting {
	all := []Setting{{"volley", h.Versions.Volley}, {"go", h.Versions.Go}, {"protocol", h.Versions.Wire},
		{"event log version", fmt.Sprint(h.Version)}, {"system", h.Machine.OS + " " + h.Machine.Arch},
		{"processors", fmt.Sprint(h.Machine.CPUs)}, {"kernels", h.Machine.Kernels}, {"plan", h.Plan.Short()}}
	if raw, err := json.Marshal(h.Options); err == nil {
		all = append(all, settings("option ", raw)...)
	}
	all = append(all, settings("argument ", h.Args)...)
	return all[:min(mostSettings, len(all))]
}

// settings returns the fields of an object, by name; what is no object has none.
func settings(of string, raw json.RawMessage) (all []Setting) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		value := strings.Trim(string(fields[name]), "\"")
		if letters := []rune(value); len(letters) > mostSetting {
			value = string(letters[:mostSetting]) + "…"
		}
		all = append(all, Setting{of + name, value})
	}
	return all
}

// Environment shows what a run was made under, folded up.
func (c *Run) Environment() string {
	if len(c.Settings) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("<details><summary>Environment</summary><div class=\"wide\" tabindex=\"0\"><table>\n")
	for _, s := range c.Settings {
		fmt.Fprintf(&b, "<tr><th>%s</th><td>%s</td></tr>\n", html.EscapeString(s.Name), html.EscapeString(s.Value))
	}
	b.WriteString("</table></div></details>\n")
	return b.String()
}
