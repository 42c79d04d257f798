package chaos

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestAClockThatIsSetApart of a program that prints the time, the time until a second later by a timer, and its own
// measure of that.
func TestAClockThatIsSetApart(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	text := `package main

import (
	"fmt"
	"time"
)

func main() {
	began := time.Now()
	<-time.After(time.Second)
	fmt.Println(began.UnixNano(), int64(time.Since(began)))
	last := time.Now()
	for range 1000000 {
		now := time.Now()
		if now.Before(last) {
			panic("time goes back")
		}
		last = now
	}
}
`
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	program, err := Build(dir, source)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []Clock{{}, {Ahead: time.Hour}, {Ahead: -time.Minute, Gains: 0.5}, {Gains: -0.25}} {
		cmd := exec.Command(program)
		cmd.Env = append(os.Environ(), c.Env())
		began := time.Now()
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		f := strings.Fields(string(out))
		at, _ := strconv.ParseInt(f[0], 10, 64)
		took, _ := strconv.ParseInt(f[1], 10, 64)
		if ahead := time.Duration(at - began.UnixNano()); ahead < c.Ahead || ahead > c.Ahead+30*time.Second {
			t.Errorf("%+v: it is %v ahead", c, ahead)
		}
		least := time.Duration((1 + c.Gains) * float64(time.Second))
		if time.Duration(took) < least*99/100 || c.Gains < 0 && took > int64(time.Second) {
			t.Errorf("%+v: a second took %v", c, time.Duration(took))
		}
	}
}
