package pgbench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/benchwatch/benchwatch/agent/model/tool/scan"
)

// maxIntervals bounds the intervals of a run that are joined: 11 days with one a second.
const maxIntervals = 1_000_000

// joinThreads adds up the intervals in the logs of a process's threads, written with --aggregate-interval, and writes
// them as the log of one thread. Threads begin at slightly different times: an interval of one belongs to the nearest
// interval of the first log.
func joinThreads(ctx context.Context, w io.Writer, logs []io.Reader) error {
	sums := map[int64]*[maxColumns]float64{}
	var first, length float64
	columns := 0
	for _, log := range logs {
		lines := bufio.NewScanner(log)
		for n := 0; lines.Scan(); n++ {
			c, width, ok := readColumns(scan.New(lines.Bytes()))
			if n%1000 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			switch {
			case !ok, columns > 0 && width != columns:
				return fmt.Errorf("a line is no interval: %.80q", lines.Text())
			case columns == 0:
				columns, first = width, c[0]
			case length == 0 && c[0] > first:
				length = c[0] - first
			}
			at := int64(0)
			if length > 0 {
				at = int64(math.Round((c[0] - first) / length))
			}
			if sums[at] == nil {
				if len(sums) == maxIntervals {
					return fmt.Errorf("more than %d intervals", maxIntervals)
				}
				sums[at] = &c
				continue
			}
			addColumns(sums[at], &c)
		}
		if err := lines.Err(); err != nil {
			return err
		}
	}
	out := bufio.NewWriter(w)
	for _, at := range slices.Sorted(maps.Keys(sums)) {
		c := sums[at]
		c[0] = first + float64(at)*length
		for i, v := range c[:columns] {
			if i > 0 {
				_ = out.WriteByte(' ') // out keeps the error
			}
			_, _ = out.Write(strconv.AppendFloat(nil, v, 'f', 0, 64))
		}
		_ = out.WriteByte('\n')
	}
	return out.Flush()
}

// addColumns adds an interval to another one of the same time.
func addColumns(to, c *[maxColumns]float64) {
	const lowest, highest, lowestLag, highestLag = 4, 5, 8, 9
	count := to[1]
	for i, v := range c {
		switch i {
		case 0:
		case lowest, lowestLag:
			if count == 0 || c[1] > 0 && v < to[i] {
				to[i] = v
			}
		case highest, highestLag:
			to[i] = max(to[i], v)
		default:
			to[i] += v
		}
	}
}
