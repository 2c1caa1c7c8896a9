package benchbase

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/benchwatch/benchwatch/agent/model/tool"
)

func invocation(args string, secrets bool) tool.Invocation {
	return tool.Invocation{
		Program: "java", Args: strings.Fields(args), WithSecrets: secrets,
		ReadFile: func(string) ([]byte, error) { return os.ReadFile("testdata/2023/tpcc-postgresql18/config.xml") },
	}
}

func TestDescribe(t *testing.T) {
	got := describe(invocation("-Xmx1g -jar lib/benchbase.jar -b tpcc -c config.xml -d results --create=true --load=true --execute=true -s 1", false))
	want := tool.Description{
		Command: "run", Workload: "tpcc", Threads: 2, Duration: 30 * time.Second, Target: "127.0.0.1:26118", Database: "benchbase", Engine: "postgresql", User: "postgres",
		Labels:      map[string]string{"isolation": "TRANSACTION_SERIALIZABLE", "scale_factor": "1"},
		LatencyLogs: []string{"results/tpcc_*.raw.csv", "results/tpcc_*.summary.json"},
		Insert:      []tool.Insertion{{At: 14, Args: []string{"-im", "1000"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := describe(invocation("-jar benchbase.jar -b tpcc -c config.xml --load=true -im 500", false)); got.Command != "load" || got.Insert != nil {
		t.Errorf("%+v", got)
	}
	if got := describe(invocation("-jar benchbase.jar -b tpcc -c config.xml --execute=true -im 500", false)); got.ReportInterval != 500*time.Millisecond || got.Insert != nil {
		t.Errorf("%+v", got)
	}
}

func TestLogin(t *testing.T) {
	got := login(invocation("-jar benchbase.jar -b tpcc -c config.xml --execute=true", true))
	if got.User != "postgres" || got.Password != "postgres" || got.TLS.Mode != tool.TLSOff {
		t.Errorf("%+v", got)
	}
}
