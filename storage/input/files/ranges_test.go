package files

import "testing"

// TestLittleDataIsSharedOut, down to parts that are worth a task.
func TestLittleDataIsSharedOut(t *testing.T) {
	const least, most = 2 << 20, 32 << 20
	for size, want := range map[int64]int64{100: least, 30 << 20: 30 << 20 / fewParts, 10 << 30: most} {
		if got := PartSize(TotalSize([]File{{Size: size / 2}, {Size: size - size/2}}), least, most); got != want {
			t.Errorf("of %d bytes a part has %d, want %d", size, got, want)
		}
	}
}
