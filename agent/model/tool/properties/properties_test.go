package properties

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	_ "github.com/benchwatch/benchwatch/agent/model/tool/tooltest" // defines -update
)

func TestEach(t *testing.T) {
	const text = "# a comment\r\n" +
		"  ! another\n" +
		"\n" +
		"recordcount=1000\n" +
		"operationcount = 2000\r\n" +
		"workload: site.ycsb.workloads.CoreWorkload\n" +
		"table usertable\n" +
		"mongodb.url=mongodb\\://h\\:27017/ycsb?w\\=1\n" +
		"hosts=a,\\\n   b,\\\n   c\n" +
		"name=caf\\u00e9\n" +
		"empty=\n" +
		"recordcount=3000\n" +
		"last=one"
	got := map[string]string{}
	Each(text, func(k, v string) { got[k] = v })
	want := map[string]string{
		"recordcount":    "3000",
		"operationcount": "2000",
		"workload":       "site.ycsb.workloads.CoreWorkload",
		"table":          "usertable",
		"mongodb.url":    "mongodb://h:27017/ycsb?w=1",
		"hosts":          "a,b,c",
		"name":           "café",
		"empty":          "",
		"last":           "one",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzEach(f *testing.F) {
	f.Add("a=b\\\n c\n#x\nu=\\u12")
	f.Fuzz(func(t *testing.T, text string) {
		Each(text, func(k, _ string) {
			if k == "" {
				t.Error("a property without a name")
			}
		})
	})
}
