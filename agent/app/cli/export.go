package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/exp/api/remote"
	commoncfg "github.com/prometheus/common/config"
	"github.com/spf13/cobra"

	"github.com/benchwatch/benchwatch/agent/app/config"
	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/base/terminal"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/ingest"
	"github.com/benchwatch/benchwatch/agent/run/record"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
	"github.com/benchwatch/benchwatch/agent/show/metrics"
	"github.com/benchwatch/benchwatch/agent/show/report"
)

// blocks is the format that is a folder.
const blocks = "blocks"

// exportCommand is one `benchwatch export`.
type exportCommand struct {
	*store
	output
	*logOptions
	names   []string
	format  string
	servers bool
	remote  string
	client  string

	streams Streams
	temp    string // where logs are made runs of, for as long as it takes
	logs    int    // that were made runs of
}

func newExport() *cobra.Command {
	cmd := newCommand("export", "Export the recorded data of runs. It is for Prometheus (see scripts/backfill.sh), a spreadsheet or a program.",
		"benchwatch export last --format=csv --output=run.csv")
	r := &exportCommand{}
	cmd.arguments(&r.names, "RUN|LOGFILE...", "Id of a run, its beginning, last, or a log file")
	r.format = "openmetrics"
	cmd.choice(&r.format, "format", "FORMAT", "openmetrics, blocks, csv or json; blocks are written into Prometheus' folder --output, json is an object per line", "openmetrics", "blocks", "csv", "json")
	cmd.toggle(&r.servers, "servers", "With csv, samples of the servers; instead of the intervals of the tool")
	cmd.text(&r.remote, "remote-write", "URL", "Send the export by remote write instead; the receiver must accept samples as old as the run")
	cmd.text(&r.client, "remote-write.http-config", "FILE",
		"File with the login, TLS settings and headers for --remote-write, in the format of Prometheus' http_config")
	r.logOptions = addLogOptions(cmd)
	r.output.declare(cmd)
	r.store = addReadingStore(cmd)
	return cmd.does(func(s Streams) error {
		r.streams = s
		return r.run()
	})
}

// prepare reads the configuration and checks the options. It returns the receiver of --remote-write.
func (r *exportCommand) prepare() (writer *remote.API, err error) {
	if err := r.loadToRead(r.streams); err != nil {
		return nil, err
	}
	if err := r.logOptions.check(r.tools, r.config); err != nil {
		return nil, err
	}
	if writer, err = r.writer(); err != nil {
		return nil, err
	}
	if r.servers && r.format != "csv" {
		return nil, &exitError{Status: exitUsage,
			Err: errors.New("--servers is for --format=csv: the other formats hold both"), Hint: "leave it out"}
	}
	if r.format == blocks {
		if info, err := os.Stat(r.output.file); err != nil || !info.IsDir() {
			return nil, &exitError{Status: exitUsage, Err: errors.New("--format=blocks needs a folder"),
				Hint: "name Prometheus' data directory, or an empty folder, with --output"}
		}
	} else if err := r.output.check(); err != nil {
		return nil, err
	}
	logs := slices.DeleteFunc(slices.Clone(r.names), func(name string) bool { return !isLog(name) })
	if len(logs) > 0 {
		err = r.checkStarts(len(logs))
	}
	return writer, err
}

func (r *exportCommand) run() error {
	writer, err := r.prepare()
	if err != nil {
		return err
	}
	temp, remove, err := temporaryFolder("export")
	if err != nil {
		return err
	}
	defer remove()
	r.temp = temp
	var histories []*record.History
	progress := terminal.NewProgress(r.streams.Err)
	defer progress.Clear()
	r.streams.Err = progress.Above(r.streams.Err)
	for i, name := range r.names {
		progress.Count("export: reading", i, len(r.names), "runs")
		dirs, err := r.resolve(name)
		if err != nil {
			return err
		}
		for _, dir := range dirs {
			h, err := r.history(context.Background(), dir)
			if err != nil {
				return err
			}
			for _, line := range h.DamageLines() {
				r.streams.notice("run %s: %s", dir.ID(), line)
			}
			histories = append(histories, h)
		}
	}
	progress.Clear()
	if writer != nil {
		return r.remoteWrite(writer, histories)
	}
	if r.format == blocks {
		b, err := backfill(histories)
		if err != nil {
			return err
		}
		defer b.Close()
		_, err = b.WriteBlocks(context.Background(), r.output.file)
		return err
	}
	return r.stream(r.streams, func(w io.Writer) error { return r.write(w, histories) })
}

func (r *exportCommand) write(w io.Writer, histories []*record.History) error {
	switch {
	case r.format == "csv" && r.servers:
		return report.ServersCSV(context.Background(), w, histories)
	case r.format == "csv":
		return report.IntervalsCSV(context.Background(), w, histories)
	case r.format == "json":
		return report.JSONLines(context.Background(), w, histories)
	}
	b, err := backfill(histories)
	if err != nil {
		return err
	}
	defer b.Close()
	_, err = b.WriteTo(w)
	return err
}

func backfill(histories []*record.History) (*metrics.Backfill, error) {
	b := metrics.NewBackfill()
	for _, h := range histories {
		if err := b.Run(context.Background(), h); err != nil {
			b.Close()
			return nil, err
		}
	}
	return b, nil
}

// isLog reports whether a name is the name of a log, not of a run.
func isLog(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// resolve returns the run that a name names or, if it is a file, the runs in
// that log.
func (r *exportCommand) resolve(name string) ([]rundir.Directory, error) {
	if !isLog(name) {
		dir, err := r.findRun(name)
		return []rundir.Directory{dir}, err
	}
	found, err := recognise(r.tools, name, r.tool)
	if err != nil {
		return nil, err
	}
	var made []ingest.Imported
	for i, t := range found {
		more, err := r.importLog(r.temp, nil, ingest.Log{Path: name, Tool: t}, r.startOf(r.logs), nil, filesBeside{})
		if err != nil && (i == 0 || !errors.Is(err, ingest.ErrNoRuns)) {
			return nil, err
		}
		made = append(made, more...)
	}
	r.logs++
	var dirs []rundir.Directory
	for i, m := range made {
		if !m.Existing {
			one := newImported(name, &made[i])
			r.streams.notice("%s", importLine(&made[i], &one, nil))
			dirs = append(dirs, rundir.At(r.temp, m.Meta.ID))
		}
	}
	return dirs, nil
}

// writer returns the client of --remote-write, nil without it.
func (r *exportCommand) writer() (*remote.API, error) {
	if r.remote == "" {
		if r.client != "" {
			return nil, &exitError{Status: exitUsage, Err: errors.New("--remote-write.http-config is for --remote-write"), Hint: "add --remote-write=http://localhost:9090/api/v1/write"}
		}
		return nil, nil
	}
	if err := config.CheckURL(r.remote); err != nil {
		return nil, &exitError{Status: exitUsage, Err: fmt.Errorf("--remote-write: %w", err),
			Hint: "such as http://localhost:9090/api/v1/write; a login goes into --remote-write.http-config"}
	}
	if r.output.file != "" {
		return nil, &exitError{Status: exitUsage,
			Err: errors.New("--remote-write writes no file: --output has no meaning"), Hint: "leave it out"}
	}
	settings := &commoncfg.HTTPClientConfig{}
	if r.client != "" {
		text, err := secret.ReadFile(r.client)
		if err != nil {
			return nil, fmt.Errorf("--remote-write.http-config: %w", err)
		}
		loaded, err := commoncfg.LoadHTTPConfig(string(text))
		if err != nil {
			return nil, fmt.Errorf("--remote-write.http-config: %w", err)
		}
		loaded.SetDirectory(filepath.Dir(r.client))
		settings = loaded
	}
	client, err := commoncfg.NewClientFromConfig(*settings, "remote-write")
	if err != nil {
		return nil, fmt.Errorf("--remote-write.http-config: %w", err)
	}
	client.Timeout = 30 * time.Second
	client.Transport = briefAnswers{client.Transport}
	target, path := r.remote, ""
	if u, err := url.Parse(target); err == nil && strings.Trim(u.Path, "/") == "" {
		path = "api/v1/write"
	}
	return remote.NewAPI(target, remote.WithAPIPath(path), remote.WithAPIHTTPClient(client),
		remote.WithAPIBackoff(remote.BackoffConfig{Min: 500 * time.Millisecond, Max: 5 * time.Second, MaxRetries: 5}))
}

// briefAnswers limits the effect of a receiver's answers: the library reads an answer to its end, repeats it in an
// error, and waits as long as the answer requests.
type briefAnswers struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t briefAnswers) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	response.Header.Del("Retry-After")
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(response.Body, 4<<10), response.Body}
	return response, nil
}

func (r *exportCommand) remoteWrite(to *remote.API, histories []*record.History) error {
	b, err := backfill(histories)
	if err != nil {
		return err
	}
	defer b.Close()
	sent, err := b.RemoteWrite(context.Background(), to)
	if err != nil {
		hint := "the same command sends everything again, which changes nothing that was taken"
		if text := err.Error(); strings.Contains(text, "out of bounds") ||
			strings.Contains(text, "out of order") || strings.Contains(text, "too old") {
			hint = "the receiver takes no samples of that age: configure its window, such as storage.tsdb.out_of_order_time_window, or use --format=blocks"
		}
		return withHint(fmt.Errorf("export: %w; %s sent", err, table.Plural(sent.Samples, "sample")), hint)
	}
	r.streams.notice("sent %s of %d series", table.Plural(sent.Samples, "sample"), sent.Series)
	return nil
}
