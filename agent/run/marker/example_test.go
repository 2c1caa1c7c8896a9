package marker_test

import (
	"fmt"
	"log"
	"os"
	"time"

	"github.com/benchwatch/benchwatch/agent/run/marker"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

func Example() {
	dir, err := os.MkdirTemp("", "run")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	run := rundir.Directory(dir)
	start := time.Date(2026, 11, 21, 2, 14, 3, 0, time.UTC)

	// An alert fires, a setting is changed, and the alert is resolved: the same ID
	// makes it one marker.
	alert := marker.Marker{ID: "c0ffee", Kind: marker.Alert, Text: "replication lag", Start: start}
	point := marker.Marker{Kind: marker.Point, Text: "set gcs.fc_limit=1000", Start: start.Add(20 * time.Second)}
	resolved := alert
	resolved.End = start.Add(time.Minute)
	for _, m := range []marker.Marker{alert, point, resolved} {
		if err := marker.Append(run, m); err != nil {
			log.Fatal(err)
		}
	}

	markers, err := marker.Read(run)
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range markers {
		fmt.Println(m.Start.Format(time.TimeOnly), m.Kind, m.Text)
	}
	// Output:
	// 02:14:03 alert replication lag
	// 02:14:23 point set gcs.fc_limit=1000
}
