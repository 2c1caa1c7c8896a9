package galera

import (
	"context"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

const uuid = "04224dac-e54b-11f1-90d4-1acb38645409"

func read(t *testing.T, status mysql.Values) *engine.Status {
	t.Helper()
	out := &engine.Status{}
	if err := New().Read(context.Background(), nil, &mysql.Tick{Status: status}, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// A MariaDB server without Galera has wsrep_* variables, too.
func TestNotANode(t *testing.T) {
	out := read(t, mysql.Values{
		"wsrep_applier_thread_count": "0", "wsrep_cluster_conf_id": "18446744073709551615", "wsrep_cluster_size": "0",
		"wsrep_cluster_state_uuid": "", "wsrep_cluster_status": "Disconnected", "wsrep_connected": "OFF",
		"wsrep_local_bf_aborts": "0", "wsrep_provider_name": "", "wsrep_ready": "OFF",
	})
	if len(out.Values) != 0 || out.Position != nil || out.Role != "" {
		t.Errorf("%+v", out)
	}
}

// Cut off from the others: its values cannot be compared, and -1 means no value.
func TestNonPrimary(t *testing.T) {
	out := read(t, mysql.Values{
		"wsrep_local_state": "0", "wsrep_cluster_status": "non-Primary", "wsrep_ready": "OFF", "wsrep_connected": "ON",
		"wsrep_cluster_conf_id": "18446744073709551615", "wsrep_cluster_size": "1",
		"wsrep_cluster_state_uuid": uuid, "wsrep_last_committed": "4711", "wsrep_local_recv_queue": "0",
	})
	if _, ok := out.Get(configurationID); ok {
		t.Error("2^64-1 shown as a configuration")
	}
	for m, want := range map[*measure.Metric]float64{primary: 0, ready: 0, connected: 1, localState: 0, LastCommitted: 4711} {
		if got, ok := out.Get(m); !ok || got != want {
			t.Errorf("%s is %v %v, want %v", m.Name, got, ok, want)
		}
	}
	if out.Replicating {
		t.Error("compared with the others")
	}
}

// Before the first state transfer there is no position.
func TestNoStateYet(t *testing.T) {
	for _, status := range []mysql.Values{
		{"wsrep_local_state": "1", "wsrep_cluster_status": "Primary", "wsrep_cluster_state_uuid": uuid, "wsrep_last_committed": "-1"},
		{"wsrep_local_state": "1", "wsrep_cluster_status": "Primary", "wsrep_cluster_state_uuid": uuid, "wsrep_last_committed": "18446744073709551615"},
		{"wsrep_local_state": "0", "wsrep_cluster_status": "Disconnected", "wsrep_cluster_state_uuid": "00000000-0000-0000-0000-000000000000", "wsrep_last_committed": "0"},
		{"wsrep_local_state": "0", "wsrep_cluster_state_uuid": "", "wsrep_last_committed": ""},
	} {
		out := read(t, status)
		if out.Position != nil || out.Replicating {
			t.Errorf("%v gives position %v", status, out.Position)
		}
		if _, ok := out.Get(LastCommitted); ok && status["wsrep_last_committed"] != "0" {
			t.Errorf("%v gives a sequence number", status)
		}
	}
}

func TestPositionsOfTwoClusters(t *testing.T) {
	a, b := Position{"a", 10}, Position{"b", 12}
	if _, ok := a.Behind(b); ok {
		t.Error("compared over clusters")
	}
	if n, ok := a.Behind(Position{"a", 12}); !ok || n != 2 {
		t.Errorf("behind by %d", n)
	}
	if n, ok := a.Behind(Position{"a", 7}); !ok || n != 0 {
		t.Errorf("ahead, yet behind by %d", n)
	}
	if a.String() != "a:10" {
		t.Error(a)
	}
}
