package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReleasedRuns guards that run directories of released versions have the values that those versions read from them.
// testdata/released has a folder for each version: runs, as the version recorded them, and what its commands printed
// about them as JSON, without sentences. 0.1.0 recorded sysbench on MariaDB (threads-2, threads-4, failed, interrupted,
// pair-g1 and -g2 of one group), a log that its agent followed, and imported logs of sysbench, with dumps of the
// server's status, and YCSB.
func TestReleasedRuns(t *testing.T) {
	versions, err := filepath.Glob("testdata/released/*")
	if err != nil || len(versions) == 0 {
		t.Fatalf("no released versions: %v", err)
	}
	for _, version := range versions {
		data := filepath.Join(t.TempDir(), "data")
		if err := os.CopyFS(data, os.DirFS(version)); err != nil {
			t.Fatal(err)
		}
		sameAsReleased(t, version+"/runs.json", "runs", "--data-dir="+data)
		sameAsReleased(t, version+"/compare.json", "compare", "--data-dir="+data, "threads-2", "threads-4")
		reports, err := filepath.Glob(version + "/report/*.json")
		if err != nil || len(reports) == 0 {
			t.Fatalf("no reports of %s: %v", version, err)
		}
		for _, report := range reports {
			sameAsReleased(t, report, "report", "--data-dir="+data, strings.TrimSuffix(filepath.Base(report), ".json"))
		}
	}
}

// sameAsReleased fails if a command prints other values than those in a file. It may print more.
func sameAsReleased(t *testing.T, file string, args ...string) {
	t.Helper()
	var out, errs bytes.Buffer
	if status := Main(append(args, "--format=json"), Streams{Out: &out, Err: &errs}); status != 0 {
		t.Fatalf("%s: exit status %d: %s", args, status, &errs)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var want, got any
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for _, difference := range missingFrom(got, want, filepath.Base(file)) {
		t.Error(difference)
	}
}

// missingFrom describes the values of want that got does not have. A list of named values may have more of them.
func missingFrom(got, want any, at string) (all []string) {
	switch want := want.(type) {
	case map[string]any:
		object, _ := got.(map[string]any)
		for key, value := range want {
			all = append(all, missingFrom(object[key], value, at+"."+key)...)
		}
	case []any:
		list, _ := got.([]any)
		for i, value := range want {
			place := fmt.Sprintf("%s[%d]", at, i)
			name := nameIn(value)
			switch {
			case name != "":
				all = append(all, missingFrom(named(list, name), value, place+" "+name)...)
			case i >= len(list):
				all = append(all, place+" is missing")
			default:
				all = append(all, missingFrom(list[i], value, place)...)
			}
		}
	case float64:
		if number, ok := got.(float64); !ok || math.Abs(number-want) > 1e-9*max(1, math.Abs(want)) {
			all = append(all, fmt.Sprintf("%s is %v, was %v", at, got, want))
		}
	default:
		if got != want {
			all = append(all, fmt.Sprintf("%s is %v, was %v", at, got, want))
		}
	}
	return all
}

// nameIn returns what identifies an object in a list; empty: its place does.
func nameIn(value any) string {
	object, _ := value.(map[string]any)
	name, _ := object["name"].(string)
	return name
}

func named(list []any, name string) any {
	for _, value := range list {
		if nameIn(value) == name {
			return value
		}
	}
	return nil
}
