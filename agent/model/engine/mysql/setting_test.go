package mysql

import "testing"

func TestSwitch(t *testing.T) {
	if v, ok := optionOf("gcs.fc_factor = 1.0; gcs.fc_limit = 16; ", "gcs.fc_limit"); !ok || v != "16" {
		t.Errorf("%q", v)
	}
	if got := literal("it's"); got != "'it''s'" || literal("0.5") != "0.5" {
		t.Error(got)
	}
	for statement, want := range map[string]string{
		"SET GLOBAL x={v}": "x", " set global a.b = 'y' ;": "a.b", "SET x=1": "", "SET GLOBAL x": "",
		"SET GLOBAL wsrep_provider_options='gcs.fc_limit={v}'": "wsrep_provider_options",
	} {
		if got, _ := toggle.Setting(statement); got != want {
			t.Errorf("%s: %q, want %q", statement, got, want)
		}
	}
}
