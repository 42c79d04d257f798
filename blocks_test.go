package volley

import (
	"context"
	"fmt"
	"testing"

	"google.golang.org/grpc"

	"github.com/volley-engine/volley/executor"
	"github.com/volley-engine/volley/internal/fault"
	"github.com/volley-engine/volley/internal/plan"
	"github.com/volley-engine/volley/internal/wire"
	"github.com/volley-engine/volley/storage"
)

func blockRunner(t *testing.T) *localRunner {
	t.Helper()
	store, err := storage.NewStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	r := &localRunner{store: store}
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
	process.Token = "the job's own"
	defer func() { process.Token = "" }()
	holder, reader := blockRunner(t), blockRunner(t)
	s := holder.store.NewSorter(3, 1)
	for i := range 5000 {
		if err := s.Add(i%2, fmt.Appendf(nil, "%05d", i), []byte("value")); err != nil {
			t.Fatal(err)
		}
	}
	key := storage.ShuffleKey{Node: 4, Map: 2, Attempt: 9}
	if _, err := holder.store.KeepShuffle(key, s); err != nil {
		t.Fatal(err)
	}
	addr, stop, err := serveJob(func(s *grpc.Server) { wire.RegisterBlocksServer(s, holder) })
	if err != nil {
		t.Fatal(err)
	}
	from := executor.Peer{ID: plan.ExecutorID("e1"), Address: addr}
	for part, want := range []int{2500, 2500, 0} {
		b, err := reader.OpenBucket(context.Background(), from, key, part)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		r := storage.NewRecordReader(b)
		for ; r.Next(); n++ {
			if string(r.Key()) != fmt.Sprintf("%05d", 2*n+part) || string(r.Value()) != "value" {
				t.Fatalf("record %d of partition %d is %s %s", n, part, r.Key(), r.Value())
			}
		}
		b.Close()
		if r.Err() != nil || n != want {
			t.Errorf("partition %d has %d records, want %d: %v", part, n, want, r.Err())
		}
	}
	key.Attempt++
	lost := func(op string) {
		t.Helper()
		_, err := reader.OpenBucket(context.Background(), from, key, 0)
		if f, ok := err.(*fault.Error); !ok || f.Kind != fault.LostInput || f.Op != op || f.Subject != "e1" {
			t.Errorf("%v, want a lost input, %s", err, op)
		}
	}
	lost("read")
	stop()
	process.Driver = addr // which is gone as well
	defer func() { process.Driver = "" }()
	lost("reach")
}
