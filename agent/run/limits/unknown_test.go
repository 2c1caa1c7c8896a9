package limits

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// fill sets all fields to random values. Many are unknown, 0, or larger than they should be.
func fill(r *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.Float64:
		switch r.IntN(6) {
		case 0, 1:
			v.SetFloat(series.Unknown())
		case 2:
			v.SetFloat(0)
		case 3:
			v.SetFloat(r.Float64())
		case 4:
			v.SetFloat(r.Float64() * 20)
		default:
			v.SetFloat(r.Float64() * 5000)
		}
	case reflect.Int:
		v.SetInt(int64(r.IntN(40)))
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.String:
		v.SetString([]string{"", "a", "b", "mysql"}[r.IntN(4)])
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), r.IntN(3), 3))
		for i := range v.Len() {
			fill(r, v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for _, class := range []string{engine.Running, engine.RowLock, engine.Commit, engine.Replication, engine.Disk, engine.Other, engine.FlowControlWait} {
			if r.IntN(2) == 0 || v.Type().Key().Kind() != reflect.String {
				continue
			}
			one := reflect.New(v.Type().Elem()).Elem()
			fill(r, one)
			v.SetMapIndex(reflect.ValueOf(class).Convert(v.Type().Key()), one)
		}
	case reflect.Struct:
		if joint := jointly(r, v.Type()); joint != nil {
			v.Set(reflect.ValueOf(joint))
			return
		}
		for _, field := range v.Fields() {
			fill(r, field)
		}
	case reflect.Pointer:
		if v.Type() == reflect.TypeFor[*cause.Stall]() {
			v.Set(reflect.ValueOf(&cause.Stall{Limit: cause.Checkpoint, Text: "%s was at %s"}))
		}
	}
}

// jointly returns a value whose fields are from the same samples, so that they are known together; nil for other types.
func jointly(r *rand.Rand, t reflect.Type) any {
	unknown := series.Unknown()
	switch isKnown := r.IntN(3) > 0; {
	case t == reflect.TypeFor[Standstill]():
		return Standstill{Seconds: float64(r.IntN(3)), From: 2, To: 4, Times: 1 + r.IntN(2)}
	case t == reflect.TypeFor[Level]() && isKnown:
		return Level{r.Float64(), r.Float64()}
	case t == reflect.TypeFor[Level]():
		return Level{unknown, unknown}
	case t == reflect.TypeFor[Slowdown]() && isKnown:
		return Slowdown{Held: r.Float64(), During: unknown, Otherwise: unknown, Stopped: r.Float64()}
	case t == reflect.TypeFor[Slowdown]():
		return Slowdown{unknown, unknown, unknown, unknown}
	}
	return nil
}

// TestUnknownIsNotPrinted guards that no text has a number that is unknown, whatever evidence is missing.
func TestUnknownIsNotPrinted(t *testing.T) {
	for seed := range uint64(20_000) {
		r := rand.New(rand.NewPCG(seed, 39))
		var e Evidence
		fill(r, reflect.ValueOf(&e).Elem())
		e.Seconds = 20
		v := Find(&e)
		v.Explain([]cause.View{{Threads: e.Threads, Throughput: e.Throughput}})
		text, err := json.Marshal(&v)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, bad := range []string{"NaN", "Inf", "–"} {
			if strings.Contains(string(text), bad) {
				t.Errorf("seed %d: %s in %s", seed, bad, text)
			}
		}
		if t.Failed() {
			break
		}
	}
}
