package wire

import (
	"path/filepath"
	"testing"
)

// TestARoomOfAClosedDoorIsClosed: who opens it late does not wait for ever.
func TestARoomOfAClosedDoorIsClosed(t *testing.T) {
	l, err := Listen(SocketAddress(filepath.Join(t.TempDir(), "door.sock")))
	if err != nil {
		t.Fatal(err)
	}
	d := Party{}.NewDoor(l, Gate{}, "0")
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if conn, err := d.Room(WhoLeads).Accept(); err == nil {
		t.Errorf("it hands out %v", conn)
	}
}
