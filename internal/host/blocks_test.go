package host

import (
	"context"
	"fmt"
	"io"
	"testing"

	"google.golang.org/grpc"

	"github.com/volley-engine/volley/executor"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/storage/shuffle"
)

func blockRunner(t *testing.T) *localRunner {
	t.Helper()
	store, err := executor.OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	r := &localRunner{store: store, process: wire.Process{Token: "the job's own"}}
	t.Cleanup(func() {
		for _, c := range r.peers {
			c.Close()
		}
	})
	return r
}

// TestShuffledRowsComeFromOtherRunners as they were; and where they do not, it
// is said whether one output is gone or its holder.
func TestShuffledRowsComeFromOtherRunners(t *testing.T) {
	holder, reader := blockRunner(t), blockRunner(t)
	w := holder.store.Outputs.NewWriter(3, 1)
	for i := range 5000 {
		room := w.Room(i % 2)
		if *room = fmt.Appendf(*room, "%05d", i); len(*room) >= w.Block {
			if err := w.Flush(i % 2); err != nil {
				t.Fatal(err)
			}
		}
	}
	key := shuffle.Key{Node: 4, Map: 2, Attempt: 9}
	rows, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	holder.store.Outputs.Keep(key, rows)
	addr, stop, err := holder.self.serve(t.TempDir(), "blocks.sock",
		func(s *grpc.Server) { wire.RegisterBlocksServer(s, holder) })
	if err != nil {
		t.Fatal(err)
	}
	from := executor.Peer{ID: plan.ExecutorID("e1"), Address: addr}
	for part, want := range []int{2500, 2500, 0} {
		b, err := reader.OpenMapOutput(context.Background(), from, key, shuffle.Span{From: part, Through: part + 1})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		r := shuffle.NewBlockReader(b)
		for block, err := r.Next(); err != io.EOF; block, err = r.Next() {
			if err != nil {
				t.Fatal(err)
			}
			for ; len(block) > 0; block = block[5:] {
				if string(block[:5]) != fmt.Sprintf("%05d", 2*n+part) {
					t.Fatalf("row %d of partition %d is %s", n, part, block[:5])
				}
				n++
			}
		}
		b.Close()
		if n != want {
			t.Errorf("partition %d has %d rows, want %d", part, n, want)
		}
	}
	key.Attempt++
	lost := func(kind fault.Kind) {
		t.Helper()
		_, err := reader.OpenMapOutput(context.Background(), from, key, shuffle.Span{Through: 1})
		if f, ok := err.(*fault.Error); !ok || f.Kind != kind || f.Subject != "e1" {
			t.Errorf("%v, want %v", err, kind)
		}
	}
	lost(fault.LostInput)
	stop()
	reader.process.Driver = addr // which is gone as well
	lost(fault.HolderLost)
}
