package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/volley-engine/volley"
	"github.com/volley-engine/volley/driver/daemon"
	"github.com/volley-engine/volley/internal/wire"
)

// aboutKeep is the help text of --keep.
const aboutKeep = "which jobs that have ended stay, with their models and logs: the last count=N, those younger than " +
	"age=30d, as many as fit into bytes=20GiB, or several of these, joined by commas; or all"

// keepValue is --keep.
type keepValue daemon.Keep

// Type returns its name in help texts.
func (*keepValue) Type() string { return "limits" }

// String returns the value as the flag is written.
func (k *keepValue) String() string {
	var all []string
	add := func(limited bool, format string, v any) {
		if limited {
			all = append(all, fmt.Sprintf(format, v))
		}
	}
	add(k.Count >= 0, "count=%d", k.Count)
	add(k.Age >= 0, "age=%v", k.Age)
	add(k.Bytes >= 0, "bytes=%dB", k.Bytes)
	if len(all) == 0 {
		return "all"
	}
	return strings.Join(all, ",")
}

// Set reads a list of limits.
func (k *keepValue) Set(text string) error {
	out := keepValue(daemon.KeepAll)
	if text != "all" {
		for part := range strings.SplitSeq(text, ",") {
			if err := out.limit(strings.TrimSpace(part)); err != nil {
				return err
			}
		}
	}
	*k = out
	return nil
}

// limit reads one of them.
func (k *keepValue) limit(text string) (err error) {
	bad := func() error { return fmt.Errorf("%q says no limit: want count=1000, age=30d or bytes=20GiB", text) }
	name, value, _ := strings.Cut(text, "=")
	var n int64
	switch name {
	case "count":
		k.Count, err = strconv.Atoi(value)
		n = int64(k.Count)
	case "age":
		k.Age, err = parseAge(value)
		n = int64(k.Age)
	case "bytes":
		k.Bytes, err = parseRoom(value)
		n = k.Bytes
	default:
		return bad()
	}
	if err != nil || n < 0 {
		return bad()
	}
	return nil
}

// parseRoom reads a size, which may be none at all.
func parseRoom(text string) (int64, error) {
	if text == "0" || text == "0B" {
		return 0, nil
	}
	n, err := volley.ParseBytes(text)
	if err == nil && n <= 0 {
		err = fmt.Errorf("%q is no size", text)
	}
	return n, err
}

// parseAge reads a duration, which may be in days.
func parseAge(text string) (time.Duration, error) {
	days, ok := strings.CutSuffix(text, "d")
	if !ok {
		return time.ParseDuration(text)
	}
	n, err := strconv.ParseUint(days, 10, 16)
	return time.Duration(n) * 24 * time.Hour, err
}

// pruning are the flags of volley jobs by which it removes jobs.
type pruning struct {
	on   bool
	keep keepValue
}

func (p *pruning) register(c *cobra.Command) {
	c.Flags().BoolVar(&p.on, "prune", false, "remove jobs that have ended")
	c.Flags().Var(&p.keep, "keep", "with --prune: "+aboutKeep)
	c.Flags().Lookup("keep").DefValue = "" // the driver's own
}

// run removes jobs that have ended, and prints which.
func (p *pruning) run(ctx context.Context, client wire.ClusterClient, addr string, own, asJSON bool) error {
	req := &wire.PruneRequest{}
	if own {
		req.Keep = &wire.Keep{Count: int64(p.keep.Count), AgeNs: int64(p.keep.Age), Bytes: p.keep.Bytes}
	}
	reply, err := client.Prune(ctx, req)
	if err != nil {
		return wire.CallError("remove jobs of", addr, err)
	}
	if asJSON {
		return printJSON(map[string]any{"removed": append([]string{}, reply.Jobs...), "bytes": reply.Bytes})
	}
	for _, id := range reply.Jobs {
		fmt.Println(id)
	}
	fmt.Fprintf(os.Stderr, "volley: %d jobs removed, %s\n", len(reply.Jobs), mib(reply.Bytes))
	return nil
}
