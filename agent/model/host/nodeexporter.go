package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// The engines of machines, from which Open chooses.
const (
	Procfs       = "procfs"        // the agent's own machine
	NodeExporter = "node_exporter" // Target.Address is the URL
	SSH          = "ssh"           // Target.Address is the machine's name for ssh
)

// Open returns a prober of a machine. It does not connect.
func Open(t engine.Target, _ *slog.Logger) (engine.Prober, error) {
	switch t.Engine {
	case Procfs:
		return newProcfsProber(), nil
	case NodeExporter:
		return newExporterProber(t.Address)
	case SSH:
		return newSSHProber(t)
	}
	return nil, fmt.Errorf("machines have no engine %q", t.Engine)
}

// maxAnswer bounds the answer of a node_exporter: one with all collectors sends some 300 KB.
const maxAnswer = 8 << 20

// Only these collectors are requested: the others would waste CPU on the server's machine. A
// node_exporter with one of them disabled refuses the request; then everything is requested.
var collectors = []string{"conntrack", "cpu", "diskstats", "meminfo", "netclass", "netdev", "netstat", "pressure", "schedstat", "stat", "time", "uname", "vmstat"}

// exporterProber reads one node_exporter through one connection.
type exporterProber struct {
	url, all string
	client   *http.Client
	previous *reading
	body     []byte
}

func newExporterProber(address string) (*exporterProber, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("expected the http:// or https:// address of a node_exporter")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/metrics"
	}
	p := &exporterProber{all: u.String()}
	if u.RawQuery == "" {
		u.RawQuery = url.Values{"collect[]": collectors}.Encode()
	}
	p.url = u.String()
	p.client = &http.Client{
		Transport: &http.Transport{MaxIdleConns: 1, MaxConnsPerHost: 1, DisableCompression: true},
		// The configuration names the address: redirects are not followed.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return p, nil
}

// Probe implements engine.Prober.
func (p *exporterProber) Probe(ctx context.Context) (*engine.Status, error) {
	status, err := p.get(ctx, p.url)
	if err == nil && status == http.StatusBadRequest && p.url != p.all {
		p.url = p.all
		status, err = p.get(ctx, p.url)
	}
	switch {
	case err != nil:
		return nil, err
	case status != http.StatusOK:
		return nil, fmt.Errorf("the answer is %d %s", status, http.StatusText(status))
	}
	now, err := parse(p.body)
	if err != nil {
		return nil, fmt.Errorf("the answer does not come from a node_exporter: %w", err)
	}
	if len(now.cpus) == 0 {
		return nil, errors.New("the answer has no node_cpu_seconds_total: is it a node_exporter?")
	}
	out := now.status(p.previous)
	p.previous = now
	return out, nil
}

// get reads an answer into p.body.
func (p *exporterProber) get(ctx context.Context, address string) (status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Accept", "text/plain;version=0.0.4")
	request.Header.Set("User-Agent", "benchwatch")
	response, err := p.client.Do(request)
	if err != nil {
		if inner, ok := errors.AsType[*url.Error](err); ok { // it repeats the address and its query
			err = inner.Err
		}
		if explained := engine.ExplainConnection(request.URL.Host, err); explained != nil {
			err = explained
		}
		return 0, err
	}
	defer response.Body.Close()
	p.body, err = appendAll(p.body[:0], response.Body)
	return response.StatusCode, err
}

func appendAll(b []byte, r io.Reader) ([]byte, error) {
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case len(b) > maxAnswer:
			return b[:0], engine.ErrTooMuch
		case errors.Is(err, io.EOF):
			return b, nil
		case err != nil:
			return b, err
		}
	}
}

// Close implements engine.Prober.
func (p *exporterProber) Close() error {
	p.client.CloseIdleConnections()
	return nil
}

// family is how to read the series of a metric family.
type family struct {
	metric *measure.Metric
	of     func(r *reading, device string, m *measure.Metric, v float64)
}

func plain(r *reading, _ string, m *measure.Metric, v float64) { r.single[m] += v }

const cpuFamily, nameFamily = "node_cpu_seconds_total", "node_uname_info"

// modes are the modes of cpuFamily.
var modes = map[string]int{"user": inUser, "nice": inUser, "system": inSystem,
	"softirq": inSoftIRQ, "irq": inIRQ, "steal": inSteal, "iowait": inIOWait, "idle": inIdle}

// families are read besides cpuFamily and nameFamily.
var families = map[string]family{
	"node_context_switches_total":              {Switches, plain},
	"node_memory_MemTotal_bytes":               {memoryTotal, plain},
	"node_memory_MemAvailable_bytes":           {nil, func(r *reading, _ string, _ *measure.Metric, v float64) { r.available = v }},
	"node_memory_SwapTotal_bytes":              {swapUsed, plain},
	"node_memory_SwapFree_bytes":               {swapUsed, func(r *reading, _ string, m *measure.Metric, v float64) { r.single[m] -= v }},
	"node_vmstat_pswpin":                       {Swapped, plain},
	"node_vmstat_pswpout":                      {Swapped, plain},
	"node_disk_read_bytes_total":               {DiskRead, (*reading).setDisk},
	"node_disk_written_bytes_total":            {DiskWritten, (*reading).setDisk},
	"node_disk_reads_completed_total":          {DiskReads, (*reading).setDisk},
	"node_disk_writes_completed_total":         {DiskWrites, (*reading).setDisk},
	"node_disk_flush_requests_total":           {DiskFlushes, (*reading).setDisk},
	"node_disk_read_time_seconds_total":        {DiskReadTime, (*reading).setDisk},
	"node_disk_write_time_seconds_total":       {DiskWriteTime, (*reading).setDisk},
	"node_disk_io_time_seconds_total":          {DiskBusyTime, (*reading).setDisk},
	"node_disk_io_time_weighted_seconds_total": {DiskQueueTime, (*reading).setDisk},
	"node_network_receive_bytes_total":         {NetReceived, (*reading).setNetwork},
	"node_network_transmit_bytes_total":        {NetSent, (*reading).setNetwork},
	"node_network_receive_packets_total":       {netReceivedPackets, (*reading).setNetwork},
	"node_network_transmit_packets_total":      {netSentPackets, (*reading).setNetwork},
	"node_network_receive_drop_total":          {netDrops, (*reading).setNetwork},
	"node_network_transmit_drop_total":         {netDrops, (*reading).setNetwork},
	"node_network_speed_bytes": {netSpeed, func(r *reading, device string, m *measure.Metric, v float64) {
		if v > 0 { // -1: unknown
			r.setNetwork(device, m, v)
		}
	}},
	"node_netstat_Tcp_RetransSegs":               {retransmits, plain},
	"node_netstat_TcpExt_ListenDrops":            {listenDrops, plain},
	"node_nf_conntrack_entries":                  {conntrack, plain},
	"node_nf_conntrack_entries_limit":            {conntracks, plain},
	"node_schedstat_waiting_seconds_total":       {cpuWaiting, plain},
	"node_pressure_cpu_waiting_seconds_total":    {pressureCPU, plain},
	"node_pressure_io_waiting_seconds_total":     {pressureIO, plain},
	"node_pressure_memory_waiting_seconds_total": {pressureMemory, plain},
	"node_boot_time_seconds":                     {nil, func(r *reading, _ string, _ *measure.Metric, v float64) { r.booted = v }},
	"node_time_seconds":                          {nil, func(r *reading, _ string, _ *measure.Metric, v float64) { r.at = v }},
}

// parse reads Prometheus' text format.
func parse(body []byte) (*reading, error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	answer, err := parser.TextToMetricFamilies(bytes.NewReader(needed(body)))
	if err != nil {
		return nil, err
	}
	r := newReading()
	for name, all := range answer {
		f := families[name]
		for _, m := range all.GetMetric() {
			switch v := valueOf(m); name {
			case cpuFamily:
				if mode, known := modes[label(m, "mode")]; known {
					r.cpu(label(m, "cpu"))[mode] += v
				}
			case nameFamily:
				r.nodename, r.release = label(m, "nodename"), label(m, "release")
			default:
				f.of(r, label(m, "device"), f.metric, v)
			}
		}
	}
	return r, nil
}

// needed returns the lines of the families that are read. In the answer of a node_exporter with all
// collectors they are the smaller part.
func needed(body []byte) []byte {
	kept := make([]byte, 0, min(len(body), 64<<10))
	for line := range bytes.Lines(body) {
		name := line
		if rest, found := bytes.CutPrefix(line, []byte("# TYPE ")); found {
			name = rest
		} else if line[0] == '#' {
			continue
		}
		if end := bytes.IndexAny(name, "{ \n"); end >= 0 {
			name = name[:end]
		}
		if _, known := families[string(name)]; known || string(name) == cpuFamily || string(name) == nameFamily {
			kept = append(kept, line...)
		}
	}
	if n := len(kept); n > 0 && kept[n-1] != '\n' {
		kept = append(kept, '\n')
	}
	return kept
}

func valueOf(m *dto.Metric) float64 {
	switch {
	case m.Counter != nil:
		return m.Counter.GetValue()
	case m.Gauge != nil:
		return m.Gauge.GetValue()
	}
	return m.GetUntyped().GetValue()
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}
