package cli

import (
	"testing"

	"github.com/prometheus/procfs"
)

// TestUnmapProgram guards that the pages of this program, which has begun, are given back, and that it goes on.
func TestUnmapProgram(t *testing.T) {
	resident := func() uint64 {
		self, err := procfs.Self()
		if err != nil {
			t.Skip("no procfs here")
		}
		status, err := self.NewStatus()
		if err != nil {
			t.Fatal(err)
		}
		return status.RssFile
	}
	resident() // needs the pages of reading it
	before := resident()
	unmapProgram()
	if after := resident(); after == 0 || after > before*3/4 {
		t.Errorf("%d bytes of files are resident, before %d", after, before)
	}
}
