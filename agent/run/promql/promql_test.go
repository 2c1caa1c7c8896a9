package promql

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Answers of Prometheus 2.42, and texts that are no such answers.
var answers = []struct{ text, value, err string }{
	{`{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"up","job":"x"},"value":[1795412584.75,"1"]}]}}`, `up{job="x"} => 1 @[1795412584.75]`, ""},
	{`{"status":"success","data":{"resultType":"vector","result":[]}}`, "", ""},
	{`{"status":"success","data":{"resultType":"vector","result":[null]}}`, "", ""},
	{`{"status":"success","data":{"resultType":"scalar","result":[1795412584.75,"2"]}}`, "scalar: 2 @[1795412584.75]", ""},
	{`{"status":"success","data":{"resultType":"scalar"}}`, "", "unexpected end of JSON input"},
	{`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"a":"b"},"values":[[1,"2"],[2,"NaN"]]},null]}}`, "{a=\"b\"} =>\n2 @[1]\nNaN @[2]", ""},
	{`{"status":"success","data":{"resultType":"string","result":[1795412584.75,"text"]}}`, "text", ""},
	{`{"status":"success","data":{"resultType":"native","result":[]}}`, "", "not an answer of Prometheus"},
	{`{"status":"error","errorType":"bad_data","error":"invalid parameter \"query\": 1:6: parse error"}`, "", `invalid parameter "query": 1:6: parse error`},
	{`{"status":"up"}`, "", "not an answer of Prometheus"},
	{`null`, "", "not an answer of Prometheus"},
	{`<html>`, "", "not an answer of Prometheus"},
}

func TestParse(t *testing.T) {
	for _, c := range answers {
		value, err := parse([]byte(c.text))
		switch {
		case c.err != "":
			if err == nil || err.Error() != c.err {
				t.Errorf("%s: %v", c.text, err)
			}
		case err != nil || value.String() != c.value:
			t.Errorf("%s: %v, %v", c.text, value, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range answers {
		f.Add([]byte(c.text))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		if value, err := parse(answer); err == nil && value == nil {
			t.Errorf("neither a value nor an error")
		} else if err == nil {
			_ = value.String()
		}
	})
}

// TestAsk guards the request, and that an error contains neither address nor login.
func TestAsk(t *testing.T) {
	status, body, asked := http.StatusOK, `{"status":"success","data":{"resultType":"matrix","result":[]}}`, ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ParseForm() == nil {
			asked = r.URL.Path + "?" + r.PostForm.Encode()
		}
		w.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(func() { server.Close(); client.CloseIdleConnections() })
	s := Server{URL: server.URL + "/prefix/"}
	from := time.UnixMilli(1795412584750)
	if _, err := s.Range(t.Context(), "up", from, from.Add(time.Minute), 1500*time.Millisecond); err != nil ||
		asked != "/prefix/api/v1/query_range?end=1795412644.750&query=up&start=1795412584.750&step=1.5&timeout=10s" {
		t.Errorf("%v, %s", err, asked)
	}
	for code, want := range map[int]string{http.StatusBadGateway: "it answers 502 Bad Gateway", http.StatusFound: "it answers 302 Found"} {
		status, body = code, "no"
		if _, err := s.At(t.Context(), "up", time.Time{}); err == nil || err.Error() != want || asked != "/prefix/api/v1/query?query=up&timeout=10s" {
			t.Errorf("%d: %v, %s", code, err, asked)
		}
	}
	server.Close()
	s.URL = strings.Replace(server.URL, "http://", "http://user:secret@", 1)
	if _, err := s.At(t.Context(), "up", time.Time{}); err == nil || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "http") {
		t.Error(err)
	}
}
