package ingest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"github.com/benchwatch/benchwatch/agent/base/follow"
	"github.com/benchwatch/benchwatch/agent/base/prefix"
	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// generatorLog is the output of one generator.
type generatorLog struct {
	path string
	// name is how it is listed: the file, or the file and the container that wrote the lines.
	name string
}

// maxContainers bounds the containers of one log that are generators.
const maxContainers = 64

// containers returns the containers whose lines are interleaved in a log and are output of the tool; nil if there are
// fewer than two. They are found in the beginning of the log.
func containers(log io.ReaderAt, size int64, t *tool.Tool) []string {
	head := make([]byte, min(size, sniffed))
	n, err := log.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	var stripper prefix.Stripper
	var names []string
	output := map[string][]byte{}
	for line := range bytes.Lines(head[:n]) {
		stripped := stripper.Strip(follow.Text(bytes.TrimSuffix(line, []byte("\n"))))
		if len(stripped.Source) == 0 {
			continue
		}
		name := string(stripped.Source)
		if output[name] == nil {
			names = append(names, name)
		}
		output[name] = append(append(output[name], stripped.Text...), '\n')
	}
	var generators []string
	for _, name := range names {
		if t.Sniff(output[name]) > 0 && len(generators) < maxContainers {
			generators = append(generators, name)
		}
	}
	if len(generators) < 2 {
		return nil
	}
	return generators
}

// separate writes the lines of each container into a file of its own in a new folder, which the caller removes.
func (im *Import) separate(ctx context.Context, log *os.File, names []string) (folder string, logs []generatorLog, err error) {
	if err := os.MkdirAll(im.DataDir, 0o755); err != nil {
		return "", nil, fmt.Errorf("create data directory: %w", err)
	}
	if folder, err = os.MkdirTemp(im.DataDir, ".containers-"); err != nil {
		return "", nil, fmt.Errorf("separate containers: %w", err)
	}
	files := map[string]*bufio.Writer{}
	var opened []*os.File
	defer func() {
		for _, f := range opened {
			err = errors.Join(err, f.Close())
		}
	}()
	for i, name := range names {
		f, err := os.Create(filepath.Join(folder, strconv.Itoa(i)+".log"))
		if err != nil {
			return folder, nil, fmt.Errorf("separate containers: %w", err)
		}
		opened, files[name] = append(opened, f), bufio.NewWriter(f)
		logs = append(logs, generatorLog{f.Name(), im.Path + " (" + name + ")"})
	}
	var stripper prefix.Stripper
	for lines := follow.NewScanner(log, 0, math.MaxInt64); ; {
		line, err := lines.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return folder, nil, err
		}
		if w := files[string(stripper.Strip(line.Text).Source)]; w != nil {
			_, _ = w.Write(line.Text) // w keeps the error
			_ = w.WriteByte('\n')
		}
	}
	for _, w := range files {
		err = errors.Join(err, w.Flush())
	}
	return folder, logs, err
}
