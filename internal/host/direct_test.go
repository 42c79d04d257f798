package host

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/volley-engine/volley/internal/wire"
)

// TestWhatAJobServesNeedsItsToken: every method that its processes serve to
// each other.
func TestWhatAJobServesNeedsItsToken(t *testing.T) {
	const token = "the job's own"
	ours := jobParty{wire.Process{Job: "job-000001", Token: token}, wire.Party{Token: token}}
	addr, stop, err := ours.serve(t.TempDir(), "direct.sock", func(s *grpc.Server) {
		wire.RegisterBlocksServer(s, wire.UnimplementedBlocksServer{})
		wire.RegisterDirectServer(s, wire.UnimplementedDirectServer{})
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for token, want := range map[string]codes.Code{"": codes.Unauthenticated, "another": codes.Unauthenticated,
		token: codes.Unimplemented} {
		conn, err := wire.Dial(addr, wire.Party{Token: token}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for _, d := range []grpc.ServiceDesc{wire.Blocks_ServiceDesc, wire.Direct_ServiceDesc} {
			if len(d.Methods) > 0 {
				t.Errorf("%s has methods that are no streams: they are not looked at here", d.ServiceName)
			}
			for _, m := range d.Streams {
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
					"/"+d.ServiceName+"/"+m.StreamName)
				if err == nil {
					_, _ = stream.SendMsg(&wire.BlockRequest{}), stream.CloseSend()
					err = stream.RecvMsg(&wire.BlockPart{})
				}
				cancel()
				if status.Code(err) != want {
					t.Errorf("%s with token %q: %v, want %v", m.StreamName, token, err, want)
				}
			}
		}
	}
}

// TestMessagesGoDirectly both ways, between a runner and its job, whatever their size and in order; and that the way
// has ended is said.
func TestMessagesGoDirectly(t *testing.T) {
	const messages = 200
	got, gone := make(chan *wire.ToDriver, messages), make(chan string, 1)
	d := &directs{receive: func(_ string, m *wire.ToDriver) { got <- m },
		ended: func(name string, _ error) { gone <- name }}
	var ours jobParty
	addr, stop, err := ours.serve(t.TempDir(), "direct.sock", func(s *grpc.Server) { wire.RegisterDirectServer(s, d) })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	c, err := dialDirect(addr, "", ours)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	size := func(i int) int { return []int{0, 10, 100 << 10}[i%3] }
	go func() {
		for i := range messages {
			down := &wire.ToExecutor{Body: &wire.ToExecutor_Parameter{Parameter: &wire.Parameter{Digest: []byte{byte(
				i)}, Data: make([]byte, size(i))}}}
			if f, err := wire.NewFrame(down); err != nil || d.to(c.name).Await(f, wire.Patience) != nil {
				t.Error("not sent", err)
			}
			up := &wire.ToDriver{Body: &wire.ToDriver_Result{Result: &wire.Result{Step: uint32(i),
				Parts: []*wire.Part{{Data: make([]byte, size(i))}}}}}
			if err := c.send(up); err != nil {
				t.Error(err)
			}
		}
	}()
	for i := range messages {
		if m, err := c.recv(); err != nil || int(m.GetParameter().Digest[0]) != i ||
			len(m.GetParameter().Data) != size(i) {
			t.Fatal(i, err, m.GetParameter().GetDigest())
		}
		if m := (<-got).GetResult(); int(m.Step) != i || len(m.Parts[0].Data) != size(i) {
			t.Fatal(i, m.Step)
		}
	}
	if d.to("nobody") != nil {
		t.Error("there is a way to nobody")
	}
	c.close()
	if name := <-gone; name != c.name || d.to(c.name) != nil {
		t.Errorf("%q has ended", name)
	}
}
