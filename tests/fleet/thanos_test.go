//go:build fleet

package fleet

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/benchwatch/benchwatch/internal/agents"
	"github.com/benchwatch/benchwatch/internal/need"
	"github.com/benchwatch/benchwatch/internal/s3server"
	"github.com/benchwatch/benchwatch/internal/servers"
)

const (
	thanosModule = "github.com/thanos-io/thanos@v0.42.4"
	bucket       = "blocks"
	// receivers is also the replication factor: each receiver has everything, and two must confirm a sample, so one can
	// be away. With a factor of 2, Thanos confirms a sample that only one has.
	receivers = 3
	// replicaLabel distinguishes copies of a series; the querier removes it.
	replicaLabel = "thanos_replica"
	// ruleOffset is how long the ruler waits for what is scraped now.
	ruleOffset = 10 * time.Second
	// blockRange is short, so that blocks are uploaded while the store hangs.
	blockRange = 2 * time.Minute
)

// thanos is a router, receivers behind it, a querier, a ruler and a store gateway.
type thanos struct {
	*engine
	program, objects        string // and the configuration of the bucket
	store                   *s3server.Server
	router, querier, ruler  *part
	gateway                 *part
	receivers               []*part
	dirs                    []string // of the receivers
	rules                   string   // the ruler's directory
	receiverStores, answers []string // gRPC addresses
}

func thanosProgram(t *testing.T, root string) string {
	t.Helper()
	return need.GoTool(t, root, thanosModule, "./cmd/thanos", "-tags=netgo,slicelabels", "-ldflags=-s")
}

// TestTools builds what is not installed: ten minutes on two cores, once.
func TestTools(t *testing.T) {
	if !slices.Contains(chosen(t), thanosName) {
		t.Skip("FLEET_ENGINES is without thanos")
	}
	root, err := servers.Repository()
	if err != nil {
		t.Fatal(err)
	}
	thanosProgram(t, root)
	s3server.Start(t)
}

func startThanos(t *testing.T, root string) *thanos {
	t.Helper()
	th := &thanos{
		program: thanosProgram(t, root),
		store:   s3server.Start(t, bucket),
		rules:   t.TempDir(),
	}
	dir := t.TempDir()
	th.objects = filepath.Join(dir, "bucket.yml")
	write(t, th.objects, fmt.Sprintf("type: S3\nconfig: {bucket: %s, endpoint: %q, access_key: %s, secret_key: %s, insecure: true}\n",
		bucket, th.store.Address, s3server.Key, s3server.Secret))
	hashring := filepath.Join(dir, "hashring.json")
	for i := range receivers {
		store := agents.FreeAddress(t)
		th.receiverStores = append(th.receiverStores, store)
		th.dirs = append(th.dirs, t.TempDir())
		p := th.part(t, fmt.Sprintf("receiver %d", i+1), "receive", "--grpc-address="+store, "--remote-write.address="+agents.FreeAddress(t), "--receive.capnproto-address="+agents.FreeAddress(t),
			"--tsdb.path="+th.dirs[i], "--tsdb.retention=1d", fmt.Sprintf("--tsdb.min-block-duration=%v", blockRange), fmt.Sprintf("--tsdb.max-block-duration=%v", blockRange),
			"--tsdb.out-of-order.time-window=1d", fmt.Sprintf("--label=%s=\"receiver%d\"", replicaLabel, i+1), "--objstore.config-file="+th.objects)
		th.receivers = append(th.receivers, p)
	}
	ring, err := json.Marshal([]map[string]any{{"algorithm": "ketama", "endpoints": th.receiverStores}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, hashring, string(ring))
	remote := agents.FreeAddress(t)
	th.router = th.part(t, "router", "receive", "--grpc-address="+agents.FreeAddress(t), "--remote-write.address="+remote, "--receive.capnproto-address="+agents.FreeAddress(t),
		fmt.Sprintf("--label=%s=\"router\"", replicaLabel), "--receive.hashrings-file="+hashring, "--receive.hashrings-algorithm=ketama",
		fmt.Sprintf("--receive.replication-factor=%d", receivers))
	ruled, kept := agents.FreeAddress(t), agents.FreeAddress(t)
	th.answers = append(append([]string{}, th.receiverStores...), ruled, kept)
	th.querier = th.queries(t, "querier", th.answers...)
	th.ruler = th.part(t, "ruler", "rule", "--grpc-address="+ruled, "--data-dir="+th.rules, "--query=http://"+th.querier.address, "--eval-interval=5s",
		"--rule-file="+filepath.Join(root, "prometheus/rules/*.yml"), "--rule-file="+filepath.Join(root, "alerts/*.rules.yml"),
		fmt.Sprintf("--rule-query-offset=%v", ruleOffset), "--rule-concurrent-evaluation=4",
		fmt.Sprintf("--label=%s=\"ruler1\"", replicaLabel), "--objstore.config-file="+th.objects)
	// The receivers have newer data: a store that hangs does not delay its queries.
	th.gateway = th.gatewayPart(t, kept, "--max-time=-3h")
	parts := append(append([]*part{}, th.receivers...), th.router, th.gateway, th.querier, th.ruler)
	for _, p := range parts {
		p.start(t)
	}
	th.engine = &engine{
		name: "Thanos", Prometheus: agents.Prometheus{Address: th.querier.address}, write: "http://" + remote + "/api/v1/receive",
		parts: parts, faulty: th.receivers[1], end: syscall.SIGKILL,
	}
	agents.Wait(t, time.Minute, "the querier has its stores", func() error { return th.has(th.querier, len(th.answers)) })
	return th
}

// part is a process of Thanos that has not been started.
func (th *thanos) part(t *testing.T, name string, args ...string) *part {
	address := agents.FreeAddress(t)
	return &part{name: name, address: address, args: append([]string{th.program, args[0], "--log.level=warn", "--http-address=" + address}, args[1:]...)}
}

// queries is a querier of some stores. The tenant of receivers is dropped as replicas
// are: series are as they were scraped.
func (th *thanos) queries(t *testing.T, name string, stores ...string) *part {
	args := []string{
		"query", "--grpc-address=" + agents.FreeAddress(t), "--query.replica-label=" + replicaLabel, "--query.replica-label=tenant_id",
		"--deduplication.func=chain", "--no-query.partial-response", "--query.timeout=1m",
	}
	for _, store := range stores {
		args = append(args, "--endpoint="+store)
	}
	return th.part(t, name, args...)
}

// gatewayPart is a store gateway, which answers from the bucket.
func (th *thanos) gatewayPart(t *testing.T, address string, more ...string) *part {
	return th.part(t, "store gateway", append([]string{
		"store", "--grpc-address=" + address, "--data-dir=" + t.TempDir(), "--objstore.config-file=" + th.objects, "--sync-block-duration=5s",
	}, more...)...)
}

// has is an error unless a querier has so many stores.
func (th *thanos) has(querier *part, stores int) error {
	text, err := agents.Get("http://" + querier.address + "/api/v1/stores")
	if err != nil {
		return err
	}
	var answer struct {
		Data map[string][]struct{ LastError any }
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		return err
	}
	n := 0
	for _, group := range answer.Data {
		for _, s := range group {
			if s.LastError == nil {
				n++
			}
		}
	}
	if n < stores {
		return fmt.Errorf("%d of %d stores: %s", n, stores, text)
	}
	return nil
}

// blocks is how many blocks in the bucket are complete, with their samples and bytes.
func (th *thanos) blocks(t *testing.T) (n int, samples, bytes int64) {
	t.Helper()
	metas, err := filepath.Glob(filepath.Join(th.store.Folder, bucket, "*", "meta.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range metas {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var meta struct {
			Stats  struct{ NumSamples int64 }
			Thanos struct {
				Files []struct {
					SizeBytes int64 `json:"size_bytes"`
				}
			}
		}
		if err := json.Unmarshal(text, &meta); err != nil {
			continue // being uploaded
		}
		n++
		samples += meta.Stats.NumSamples
		for _, f := range meta.Thanos.Files {
			bytes += f.SizeBytes
		}
	}
	return n, samples, bytes
}

// fromBucket ends the receivers in an orderly way, so that they upload all they have,
// and returns a Prometheus API that has only the bucket.
func (th *thanos) fromBucket(t *testing.T) agents.Prometheus {
	t.Helper()
	for _, r := range th.receivers {
		r.Signal(t, syscall.SIGTERM)
	}
	for _, r := range th.receivers {
		if code := r.Status(t, 3*time.Minute); code != 0 {
			t.Errorf("%s ended with %d:\n%s", r.name, code, r.Output(t))
		}
	}
	address := agents.FreeAddress(t)
	gateway := th.gatewayPart(t, address)
	gateway.start(t)
	querier := th.queries(t, "querier of the bucket", address)
	querier.start(t)
	agents.Wait(t, time.Minute, "the querier has the gateway", func() error { return th.has(querier, 1) })
	return agents.Prometheus{Address: querier.address}
}

// upload adds blocks in a folder to the bucket.
func (th *thanos) upload(t *testing.T, folder string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), th.program, "tools", "bucket", "upload-blocks", "--path="+folder,
		fmt.Sprintf("--label=%s=\"backfill\"", replicaLabel), "--objstore.config-file="+th.objects).CombinedOutput()
	if err != nil {
		t.Fatalf("upload-blocks: %v\n%s", err, out)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
