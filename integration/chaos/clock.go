package chaos

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Clock is how a process's clock differs from its machine's.
type Clock struct {
	Ahead time.Duration // by so much, from the process's start
	Gains float64       // and by this share of the time since
}

// Env returns the environment by which a program that Build has made has the clock, with whatever it starts: GODEBUG is
// passed on to them, and what Go does not know in it is not looked at.
func (c Clock) Env() string {
	return fmt.Sprintf("GODEBUG=volleyclock=%d/%d", c.Ahead.Nanoseconds(), int64(c.Gains*1e6))
}

// now takes the place of the functions of package time that read the clock.
const now = `
// setApart has by how much the clock is ahead, and what it gains in a million.
var setApart = func() (out struct{ ahead, gains int64 }) {
	all, _ := syscall.Getenv("GODEBUG")
	const key = "volleyclock="
	for i := 0; i+len(key) <= len(all); i++ {
		if all[i:i+len(key)] != key {
			continue
		}
		to, sign := &out.ahead, int64(1)
	digits:
		for _, c := range []byte(all[i+len(key):]) {
			switch {
			case c == '/':
				out.ahead *= sign
				to, sign = &out.gains, 1
			case c == '-':
				sign = -1
			case c >= '0' && c <= '9':
				*to = *to*10 + int64(c-'0')
			default:
				break digits
			}
		}
		*to *= sign
		return out
	}
	return out
}()

// Now returns the current local time, as the process's clock has it.
func Now() Time {
	t := trueNow()
	if setApart.ahead == 0 && setApart.gains == 0 {
		return t
	}
	return t.Add(Duration(setApart.ahead + t.ext*setApart.gains/1000000)) // t.ext is monotonic: so is this
}

// Since returns the time elapsed since t.
func Since(t Time) Duration { return Now().Sub(t) }

// Until returns the duration until t.
func Until(t Time) Duration { return t.Sub(Now()) }
`

// Build builds a package with a clock that Clock.Env sets. dir takes the changed file, and the program.
func Build(dir, pkg string) (program string, err error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	path := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	source := string(raw)
	for from, to := range map[string]string{"func Now() Time {": "func trueNow() Time {",
		"func Since(t Time) Duration {": "func trueSince(t Time) Duration {",
		"func Until(t Time) Duration {": "func trueUntil(t Time) Duration {",
		"\t\"math/bits\"\n":             "\t\"math/bits\"\n\t\"syscall\"\n"} {
		if strings.Count(source, from) != 1 {
			return "", fmt.Errorf("%s is not as it is expected: %q is there %d times", path, from,
				strings.Count(source, from))
		}
		source = strings.Replace(source, from, to, 1)
	}
	changed, overlay := filepath.Join(dir, "time.go"), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err != nil {
		return "", err
	}
	for name, content := range map[string]string{changed: source + now, overlay: string(replace)} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			return "", err
		}
	}
	program = filepath.Join(dir, strings.TrimSuffix(filepath.Base(pkg), ".go")+"-apart")
	cmd := exec.Command("go", "build", "-overlay", overlay, "-ldflags=-s", "-o", program, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return program, nil
}
