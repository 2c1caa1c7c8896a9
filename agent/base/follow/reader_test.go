package follow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// file is the followed file as another program writes it.
type file struct {
	t    *testing.T
	path string
}

func (f file) append(s string) {
	f.t.Helper()
	w, err := os.OpenFile(f.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	f.must(err)
	_, err = w.WriteString(s)
	f.must(err)
	f.must(w.Close())
}

func (f file) rewrite(s string) {
	f.t.Helper()
	f.must(os.WriteFile(f.path, []byte(s), 0o644))
}

func (f file) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// reading is a Reader and what the test expects of it.
type reading struct {
	t *testing.T
	r *Reader
}

// want waits for the next lines; "~" in front means unterminated, "^" cut.
func (r reading) want(lines ...string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for _, want := range lines {
		l, err := r.r.Next(ctx)
		if errors.Is(err, ErrRewritten) {
			if err = r.r.Restart(0); err == nil {
				l, err = r.r.Next(ctx)
			}
		}
		if err != nil {
			r.t.Fatalf("want %q, got error %v", want, err)
		}
		got := string(l.Text)
		if l.Unterminated {
			got = "~" + got
		}
		if l.Cut {
			got = "^" + got
		}
		if got != want {
			r.t.Fatalf("got line %q, want %q", got, want)
		}
	}
}

func (r reading) wantEnd() {
	r.t.Helper()
	r.r.Finish()
	if l, err := r.r.Next(context.Background()); !errors.Is(err, io.EOF) {
		r.t.Fatalf("got %q, %v, want the end", l.Text, err)
	}
}

// The scenarios that tailers are known to get wrong, each with events and by
// polling alone.
func TestReader(t *testing.T) {
	scenarios := map[string]func(f file, r reading){
		"append": func(f file, r reading) {
			f.append("one\ntwo\n")
			r.want("one", "two")
			f.append("three\n")
			r.want("three")
		},
		"half lines": func(f file, r reading) {
			f.append("on")
			f.append("e\ntw")
			r.want("one")
			f.append("o\n")
			r.want("two")
		},
		"last line without end": func(f file, r reading) {
			f.append("one\nrest")
			r.want("one")
			r.r.Finish()
			r.want("~rest")
		},
		"written to after it was renamed and its name taken": func(f file, r reading) {
			f.append("one\n")
			r.want("one")
			w, err := os.OpenFile(f.path, os.O_APPEND|os.O_WRONLY, 0)
			f.must(err)
			f.must(os.Rename(f.path, f.path+".1"))
			f.append("other\n")
			_, err = w.WriteString("late\nhalf")
			f.must(err)
			f.must(w.Close())
			r.want("late")
			r.r.Finish()
			r.want("~half")
		},
		"NULs and carriage returns": func(f file, r reading) {
			f.append("\x00\x00one\nprogress 1%\rprogress 2%\rtwo\r\n\x00")
			r.want("one", "two\r")
			f.append("\x00three\n")
			r.want("three")
		},
		"truncated to nothing": func(f file, r reading) {
			f.append("one\ntwo\n")
			r.want("one", "two")
			f.must(os.Truncate(f.path, 0))
			f.append("3\n")
			r.want("3")
		},
		"rewritten longer than before": func(f file, r reading) {
			f.append("one\ntwo\n")
			r.want("one", "two")
			f.rewrite("a longer line than both\nand more\n")
			r.want("a longer line than both", "and more")
		},
		"rewritten at the same length": func(f file, r reading) {
			f.append("one\ntwo\n")
			r.want("one", "two")
			f.rewrite("six\nten\n")
			r.want("six", "ten")
		},
		"binary bytes": func(f file, r reading) {
			f.append("a\x00\xff\xfe\r\n\n")
			r.want("a\x00\xff\xfe\r", "")
		},
		"overlong line": func(f file, r reading) {
			f.append("short\n" + strings.Repeat("x", 500_000) + "\nafter\n")
			r.want("short", "^"+strings.Repeat("x", 100), "after")
		},
		"line just too long": func(f file, r reading) {
			f.append(strings.Repeat("y", 100) + "\n" + strings.Repeat("z", 101) + "\n")
			r.want(strings.Repeat("y", 100), "^"+strings.Repeat("z", 100))
		},
		"overlong line in pieces": func(f file, r reading) {
			f.append(strings.Repeat("x", 200))
			r.want("^" + strings.Repeat("x", 100))
			f.append(strings.Repeat("x", 200))
			f.append("\nafter\n")
			r.want("after")
		},
	}
	for name, scenario := range scenarios {
		for _, events := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/events=%v", name, events), func(t *testing.T) {
				f := file{t, filepath.Join(t.TempDir(), "log")}
				f.append("")
				opts := Options{MaxLine: 100, Poll: time.Millisecond}
				if events {
					opts.Notifier = startNotifier(t)
					opts.Poll = time.Hour // events alone must do
				}
				r, err := Open(f.path, opts)
				f.must(err)
				defer r.Close()
				scenario(f, reading{t, r})
				reading{t, r}.wantEnd()
			})
		}
	}
}

func startNotifier(t *testing.T) *Notifier {
	t.Helper()
	n, err := NewNotifier(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { n.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	return n
}

func TestResumeAtOffset(t *testing.T) {
	f := file{t, filepath.Join(t.TempDir(), "log")}
	f.append("one\ntwo\nthree\n")
	r, err := Open(f.path, Options{Poll: time.Millisecond})
	f.must(err)
	reading{t, r}.want("one")
	offset := r.Offset()
	f.must(r.Close())
	r, err = Open(f.path, Options{Offset: offset, Poll: time.Millisecond})
	f.must(err)
	defer r.Close()
	reading{t, r}.want("two", "three")
}

// TestHugeLine guards that a line of 1 GiB needs no more memory than the longest line that
// is delivered whole.
func TestHugeLine(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	path := filepath.Join(t.TempDir(), "log")
	w, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	const size = 1 << 30
	for at, text := range map[int64]string{0: "before\nx", size: "\nafter\n"} { // the rest is a hole, which takes no disk
		if _, err := w.WriteAt([]byte(text), at); err != nil {
			t.Fatal(err)
		}
	}
	var copied int64
	r, err := Open(path, Options{Copy: func(_ int64, p []byte) error { copied += int64(len(p)); return nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	reading{t, r}.want("before", "^x"+strings.Repeat("\x00", DefaultMaxLine-1), "after")
	if have := cap(r.lines.buf); have > 3*DefaultMaxLine || copied != size+int64(len("\nafter\n")) {
		t.Errorf("a buffer of %d bytes, %d copied", have, copied)
	}
}

// TestNotRegular guards that nothing is opened that could block.
func TestNotRegular(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("/dev/zero", link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, link, dir} {
		if _, err := Open(path, Options{}); !errors.Is(err, ErrNotRegular) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestRotatedName(t *testing.T) {
	for name, want := range map[string]bool{
		"a.log": false, "a.log.1": true, "a.log-20261122": true, "a.log~": true, "a-20261122.log": true, "a.1.log": true,
		"a.log.1.gz": false, "a.log.zst": false, "ab.log": false, "a-db1.log": false, "a-16.log": false, "b.log.1": false, "a.logs": false,
	} {
		if got := RotatedName("/l/a.log", "/l/"+name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	for name, want := range map[string]int{"a.log": 0, "a.log.1": 1, "a.log.12": 12, "a.log-2": 2, "a.log-20261122": 0, "a.log.old": 0, "a-20261122.log": 0, "a.2.log": 2, "a.log.1.gz": 0, "b": 0} {
		if got := RotationNumber("/l/a.log", "/l/"+name); got != want {
			t.Errorf("%s: number %d, want %d", name, got, want)
		}
	}
	if RotatedName("/l/a.log", "/m/a.log.1") {
		t.Error("a file of another folder")
	}
}

func TestUsage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	w, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if u := UsageOf(r); u != Written {
		t.Errorf("open for writing: %v", u)
	}
	w.Close()
	if u := UsageOf(r); u == Written {
		t.Errorf("open for reading: %v", u)
	}
}

func TestFirstData(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	for at, text := range map[int64]string{0: "x", 10: "x\x00", 1 << 33: "line", 5000: ""} {
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte(text), at); err != nil {
			t.Fatal(err)
		}
		if text == "" {
			at = 0
		}
		if got, err := FirstData(t.Context(), f, 0); got != at || err != nil {
			t.Errorf("first byte at %d, %v, want %d", got, err, at)
		}
		f.Close()
	}
}

func TestNextEndsWithContext(t *testing.T) {
	f := file{t, filepath.Join(t.TempDir(), "log")}
	f.append("")
	r, err := Open(f.path, Options{})
	f.must(err)
	defer r.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := r.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestOpenMissing(t *testing.T) {
	if _, err := Open(filepath.Join(t.TempDir(), "none"), Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// Whatever a file contains and however it arrives, its lines joined together are the file.
func FuzzReader(f *testing.F) {
	f.Add([]byte("one\ntwo\n\nrest"), uint8(3))
	f.Add([]byte("\n\n\x00\xff"), uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, step uint8) {
		path := filepath.Join(t.TempDir(), "log")
		w, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		var copied []byte
		r, err := Open(path, Options{Poll: time.Millisecond, MaxLine: len(data) + 1, Copy: func(at int64, p []byte) error {
			copied = append(copied[:at], p...)
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		var got []byte
		for i := 0; i < len(data); i += int(step) + 1 {
			if _, err := w.Write(data[i:min(len(data), i+int(step)+1)]); err != nil {
				t.Fatal(err)
			}
		}
		r.Finish()
		for {
			l, err := r.Next(context.Background())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			whole := data[l.Offset : l.Offset+l.Size]
			if l.Offset != int64(len(got)) || !bytes.Equal(l.Text, Text(bytes.TrimSuffix(whole, []byte("\n")))) || l.Unterminated == bytes.HasSuffix(whole, []byte("\n")) {
				t.Fatalf("line %+v at %d", l, len(got))
			}
			got = append(got, whole...)
		}
		if string(got) != string(data) || string(copied) != string(data) {
			t.Errorf("got %q, copied %q, want %q", got, copied, data)
		}
	})
}
