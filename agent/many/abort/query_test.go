package abort

import "testing"

// Answers of Prometheus 2.42 to up == 1, up == 2, vector(0), scalar(up), 1 > bool 2, up[1m], "text"
// and up ==, and texts that are no such answers.
var answers = []struct {
	text  string
	holds bool
	value string
	err   string
}{
	{`{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"up","instance":"a:1","job":"x"},"value":[1795412584.75,"1"]}]}}`, true, `1 of up{instance="a:1", job="x"}`, ""},
	{`{"status":"success","data":{"resultType":"vector","result":[]}}`, false, "", ""},
	{`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1795412584.75,"0"]}]}}`, true, "0", ""},
	{`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"0.25"]},{"metric":{},"value":[1,"2"]}]}}`, true, "0.25 and 1 other", ""},
	{`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"NaN"]},{"metric":{},"value":[1,"0.25"]}]}}`, true, "0.25", ""},
	{`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"NaN"]}]}}`, false, "", ""},
	{`{"status":"success","data":{"resultType":"scalar","result":[1795412584.75,"NaN"]}}`, false, "NaN", ""},
	{`{"status":"success","data":{"resultType":"scalar","result":[1795412584.75,"2"]}}`, true, "2", ""},
	{`{"status":"success","data":{"resultType":"scalar","result":[1795412584.75,"0"]}}`, false, "0", ""},
	{`{"status":"success","data":{"resultType":"matrix","result":[]}}`, false, "", "the expression returns neither an instant vector nor a scalar"},
	{`{"status":"success","data":{"resultType":"string","result":[1795412584.75,"text"]}}`, false, "", "the expression returns neither an instant vector nor a scalar"},
	{`{"status":"error","errorType":"bad_data","error":"invalid parameter \"query\": 1:6: parse error: unexpected end of input"}`, false, "", `invalid parameter "query": 1:6: parse error: unexpected end of input`},
	{`{"status":"up"}`, false, "", "not an answer of Prometheus"},
	{`null`, false, "", "not an answer of Prometheus"},
}

func TestJudge(t *testing.T) {
	for _, c := range answers {
		holds, value, err := evaluate([]byte(c.text))
		message := ""
		if err != nil {
			message = err.Error()
		}
		if holds != c.holds || value != c.value || message != c.err {
			t.Errorf("%s: %v, %q, %q", c.text, holds, value, message)
		}
	}
}

func FuzzJudge(f *testing.F) {
	for _, c := range answers {
		f.Add([]byte(c.text))
	}
	f.Add([]byte(`{"status":"success","data":{"resultType":"vector","result":[null]}}`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		holds, value, err := evaluate(answer)
		if holds && (err != nil || value == "") || len(value) > 400 {
			t.Errorf("%v, %q, %v", holds, value, err)
		}
	})
}
