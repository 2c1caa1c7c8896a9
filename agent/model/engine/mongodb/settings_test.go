package mongodb

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// TestReadSettings guards which parts of a composed answer become settings. The path of a key file
// must not.
func TestReadSettings(t *testing.T) {
	f := newFake(t)
	f.answer("hello", bson.D{{Key: "isWritablePrimary", Value: true}, {Key: "maxWireVersion", Value: int32(21)}})
	f.answer("serverStatus", bson.D{
		{Key: "version", Value: "7.0.5"}, {Key: "storageEngine", Value: bson.D{{Key: "name", Value: "wiredTiger"}}},
		{Key: "wiredTiger", Value: bson.D{{Key: "cache", Value: bson.D{{Key: "maximum bytes configured", Value: int64(1073741824)}}}}},
	})
	f.answer("getParameter", bson.D{{Key: "enableFlowControl", Value: true}, {Key: "syncdelay", Value: 60.0}, {Key: "saslauthdPath", Value: "hunter2"}})
	f.answer("getCmdLineOpts", bson.D{{Key: "parsed", Value: bson.D{
		{Key: "storage", Value: bson.D{{Key: "wiredTiger", Value: bson.D{{Key: "collectionConfig", Value: bson.D{{Key: "blockCompressor", Value: "zstd"}}}}}}},
		{Key: "security", Value: bson.D{{Key: "keyFile", Value: "hunter2"}}},
	}}})
	f.refuse("getDefaultRWConcern", 59, "CommandNotFound", "no such command: 'getDefaultRWConcern'")
	p := openFake(t, f)
	if _, err := p.Settings(probeContext(t)); err == nil {
		t.Error("settings without a connection")
	}
	mustProbe(t, p)
	got, err := p.Settings(probeContext(t))
	if err != nil {
		t.Fatal(err)
	}
	want := engine.Settings{
		"storageEngine": "wiredTiger", "wiredTiger.cache.maximum_bytes": "1073741824", "enableFlowControl": "true", "syncdelay": "60",
		"storage.wiredTiger.collectionConfig.blockCompressor": "zstd",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	f.answer("getDefaultRWConcern", bson.D{{Key: "defaultWriteConcern", Value: bson.D{{Key: "w", Value: "majority"}, {Key: "j", Value: false}}}})
	if got, err = p.Settings(probeContext(t)); err != nil || got["defaultWriteConcern.w"] != "majority" || got["defaultWriteConcern.j"] != "false" {
		t.Errorf("%v %v", got, err)
	}
}
