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
	addr, stop, err := serveJob(token, func(s *grpc.Server) {
		wire.RegisterBlocksServer(s, wire.UnimplementedBlocksServer{})
		wire.RegisterDirectServer(s, wire.UnimplementedDirectServer{})
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for token, want := range map[string]codes.Code{"": codes.Unauthenticated, "another": codes.Unauthenticated, token: codes.Unimplemented} {
		conn, err := wire.Dial(addr, token)
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
				stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/"+d.ServiceName+"/"+m.StreamName)
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

// TestBulkyMessagesGoDirectly both ways, between a runner and its job.
func TestBulkyMessagesGoDirectly(t *testing.T) {
	got := make(chan *wire.ToDriver, 1)
	d := &directs{receive: func(_ string, m *wire.ToDriver) { got <- m }}
	addr, stop, err := serveJob("", func(s *grpc.Server) { wire.RegisterDirectServer(s, d) })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	c, err := dialDirect(addr, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	bulk := make([]byte, 1<<20)
	param := &wire.ToExecutor{Body: &wire.ToExecutor_Parameter{Parameter: &wire.Parameter{Digest: []byte("d"), Data: bulk}}}
	if sent, err := d.send(c.name, param); !sent || err != nil {
		t.Fatal(sent, err)
	}
	if m, err := c.recv(); err != nil || len(m.GetParameter().GetData()) != len(bulk) {
		t.Fatal(err)
	}
	if sent, _ := d.send(c.name, &wire.ToExecutor{Body: &wire.ToExecutor_StopStep{StopStep: &wire.StopStep{}}}); sent {
		t.Error("what is small goes by way of the driver")
	}
	if sent, _ := d.send("nobody", param); sent {
		t.Error("sent to nobody")
	}
	b, _, err := wire.BulkOf(&wire.ToDriver{Body: &wire.ToDriver_Result{Result: &wire.Result{Parts: []*wire.Part{{Data: bulk}}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.stream.SendMsg(b); err != nil {
		t.Fatal(err)
	}
	if m := <-got; len(m.GetResult().GetParts()[0].Data) != len(bulk) {
		t.Error("the result has another size")
	}
}
