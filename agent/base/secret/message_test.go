package secret

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"strings"
	"testing"
)

// messages are errors as users see them: complete, but without the secret.
var messages = []struct {
	err  error
	want string
}{
	{fmt.Errorf("read password file: %w", &fs.PathError{Op: "open", Path: "/etc/benchwatch/db.password", Err: fs.ErrPermission}), "read password file: open /etc/benchwatch/db.password: permission denied"},
	{fmt.Errorf("targets[0].password: %w", errors.New("unknown key")), "targets[0].password: unknown key"},
	{fmt.Errorf("%w: archive s3://b/x", errors.New("no credentials")), "no credentials: archive s3://b/x"},
	{errors.Join(fmt.Errorf("token: %w", fs.ErrNotExist), errors.New("password=hunter2")), "token: file does not exist\npassword=***"},
	{&url.Error{Op: "parse", URL: "mysql://u:hunter2@h:x", Err: errors.New(`invalid port ":x"`)}, `parse "mysql://u:***@h:x": invalid port ":x"`},
	{fmt.Errorf("start: %w", errors.New("dsn=u:hunter2@tcp(h)/d")), "start: dsn=u:***@tcp(h)/d"},
	{fmt.Errorf("web configuration: %w", errors.New("cannot unmarshal !!str `hunter2` into string")), "web configuration: cannot unmarshal !!str *** into string"},
}

func TestError(t *testing.T) {
	for _, m := range messages {
		if got := Error(m.err); got != m.want {
			t.Errorf("got  %q\nwant %q", got, m.want)
		}
		if got := Sprintf("the password: %v, %d", m.err, 5); got != "the password: "+m.want+", 5" {
			t.Errorf("Sprintf: %q", got)
		}
	}
	if got := Sprintf("user %q at %s", "u:hunter2@h", "mysql://u:hunter2@h"); got != `user "u:***@h" at mysql://u:***@h` {
		t.Errorf("Sprintf: %q", got)
	}
}

func TestHandler(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(NewHandler(slog.NewTextHandler(&b, nil))).With("url", "http://u:hunter2@h/")
	for _, m := range messages {
		log.Error("no token: look at it", "err", m.err, slog.Group("g", "password", "hunter2", "token_file", "a"))
	}
	if strings.Contains(b.String(), "hunter2") || !strings.Contains(b.String(), "db.password: permission denied") || !strings.Contains(b.String(), "g.token_file=a") {
		t.Errorf("%s", b.String())
	}
}
