package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// backfillLines are eleven days of reports a second; promtool needs minutes for them.
const backfillLines = 1_000_000

// backfill compares the export of an old log with what promtool needs to make
// blocks of it.
func (b *bench) backfill() error {
	log, text := filepath.Join(b.dir, "backfill.log"), filepath.Join(b.dir, "backfill.om")
	if err := b.longLog(log, backfillLines); err != nil {
		return err
	}
	ours, err := cpuSeconds(b.binary, "export", "--tool=sysbench", "--start=2026-01-01T00:00:00Z", "--output="+text, log)
	if err != nil {
		return err
	}
	theirs, err := cpuSeconds("promtool", "tsdb", "create-blocks-from", "--max-block-duration=24h", "openmetrics", text, filepath.Join(b.dir, "blocks"))
	if err != nil {
		return err
	}
	b.add(figure{fmt.Sprintf("export of %d interval lines, CPU seconds", backfillLines), fmt.Sprintf("%.2f", ours),
		"promtool making blocks of it", fmt.Sprintf("%.2f", theirs), ratio(ours, theirs), ""})
	return os.RemoveAll(filepath.Join(b.dir, "blocks"))
}

// cpuSeconds runs a program and returns what it used.
func cpuSeconds(name string, args ...string) (float64, error) {
	cmd := exec.Command(name, args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%s: %w\n%s", filepath.Base(name), err, out)
	}
	return (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), nil
}
