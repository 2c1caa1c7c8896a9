package mongodb

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/benchwatch/benchwatch/agent/model/engine/enginetest"
)

// answer builds the fake server's answer to one command. A nil document closes the connection
// without an answer.
type answer func(cmd bson.Raw) bson.D

// fakeServer implements MongoDB's wire protocol and answers from fixtures, so that the real driver
// runs. It has no roles and checks nothing.
type fakeServer struct {
	*enginetest.Port

	mu      sync.Mutex
	answers map[string]answer
	asked   []bson.Raw
}

func newFake(t *testing.T) *fakeServer {
	t.Helper()
	return startFake(t, "127.0.0.1:0")
}

func startFake(t *testing.T, address string) *fakeServer {
	t.Helper()
	f := &fakeServer{answers: map[string]answer{}}
	f.Port = enginetest.Listen(t, address, f.serve)
	f.answer("endSessions", bson.D{})
	return f
}

// answer sets the answer to a command: a document, to which `ok` is added.
func (f *fakeServer) answer(command string, doc bson.D) {
	f.answerFunc(command, func(bson.Raw) bson.D { return doc })
}

// refuse sets an error as the answer to a command.
func (f *fakeServer) refuse(command string, code int32, name, message string) {
	f.answer(command, bson.D{{Key: "ok", Value: 0.0}, {Key: "errmsg", Value: message}, {Key: "code", Value: code}, {Key: "codeName", Value: name}})
}

func (f *fakeServer) answerFunc(command string, a answer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[command] = a
}

// commands returns how often each command was received.
func (f *fakeServer) commands() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := map[string]int{}
	for _, cmd := range f.asked {
		n[commandName(cmd)]++
	}
	return n
}

// all returns the received commands with this name.
func (f *fakeServer) all(command string) (found []bson.Raw) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, cmd := range f.asked {
		if commandName(cmd) == command {
			found = append(found, cmd)
		}
	}
	return found
}

// last returns the last received command with this name.
func (f *fakeServer) last(command string) bson.Raw {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, cmd := range slices.Backward(f.asked) {
		if commandName(cmd) == command {
			return cmd
		}
	}
	return nil
}

const (
	opReply = 1
	opQuery = 2004
	opMsg   = 2013
)

// serve answers the messages of one connection: OP_QUERY, with which drivers send their first
// hello, and OP_MSG.
func (f *fakeServer) serve(conn net.Conn) {
	for {
		var header [16]byte
		if _, err := io.ReadFull(conn, header[:]); err != nil {
			return
		}
		size := binary.LittleEndian.Uint32(header[0:])
		if size < 16 || size > 1<<20 {
			return
		}
		body := make([]byte, size-16)
		if _, err := io.ReadFull(conn, body); err != nil {
			return
		}
		var cmd bson.Raw
		op := binary.LittleEndian.Uint32(header[12:])
		switch op {
		case opMsg:
			cmd = bson.Raw(body[5:]) // flags, section kind 0
		case opQuery:
			rest := body[4:]
			for rest[0] != 0 {
				rest = rest[1:]
			}
			cmd = bson.Raw(rest[9:])
		default:
			return
		}
		length := binary.LittleEndian.Uint32(cmd)
		doc := f.reply(cmd[:length])
		if doc == nil {
			return
		}
		raw, err := bson.Marshal(doc)
		if err != nil {
			return
		}
		if _, err := conn.Write(message(op, binary.LittleEndian.Uint32(header[4:]), raw)); err != nil {
			return
		}
	}
}

// message frames an answer to the request with this kind and id.
func message(op, request uint32, doc []byte) []byte {
	var body []byte
	answerOp := uint32(opMsg)
	if op == opQuery {
		answerOp = opReply
		body = append(body, make([]byte, 16)...) // flags, cursor, start
		body = append(body, 1, 0, 0, 0)          // one document
	} else {
		body = append(body, make([]byte, 5)...) // flags, section kind 0
	}
	body = append(body, doc...)
	m := binary.LittleEndian.AppendUint32(nil, uint32(16+len(body)))
	m = binary.LittleEndian.AppendUint32(m, 0)
	m = binary.LittleEndian.AppendUint32(m, request)
	m = binary.LittleEndian.AppendUint32(m, answerOp)
	return append(m, body...)
}

func commandName(cmd bson.Raw) string {
	element, err := cmd.IndexErr(0)
	if err != nil {
		return ""
	}
	name := element.Key()
	if name == "isMaster" || name == "ismaster" {
		return "hello"
	}
	return name
}

func (f *fakeServer) reply(cmd bson.Raw) bson.D {
	f.mu.Lock()
	f.asked = append(f.asked, slices.Clone(cmd))
	a := f.answers[commandName(cmd)]
	f.mu.Unlock()
	if a == nil {
		return bson.D{{Key: "ok", Value: 0.0}, {Key: "errmsg", Value: "no such command"}, {Key: "code", Value: int32(59)}, {Key: "codeName", Value: "CommandNotFound"}}
	}
	doc := a(cmd)
	if doc == nil {
		return nil
	}
	for _, e := range doc {
		if e.Key == "ok" {
			return doc
		}
	}
	return append(slices.Clone(doc), bson.E{Key: "ok", Value: 1.0})
}

// cursor returns the answer to a query with all its documents.
func cursor(namespace string, docs ...bson.D) bson.D {
	batch := bson.A{}
	for _, d := range docs {
		batch = append(batch, d)
	}
	return bson.D{{Key: "cursor", Value: bson.D{{Key: "id", Value: int64(0)}, {Key: "ns", Value: namespace}, {Key: "firstBatch", Value: batch}}}}
}

// fixture reads a document of relaxed extended JSON.
func fixture(t testing.TB, path ...string) bson.D {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{"testdata"}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	var doc bson.D
	if err := bson.UnmarshalExtJSON(text, false, &doc); err != nil {
		t.Fatal(err)
	}
	// Relaxed JSON can't express it, but the driver insists on a long here.
	if v, ok := lookup(doc, "topologyVersion", "counter").(int32); ok {
		doc = with(doc, int64(v), "topologyVersion", "counter")
	}
	return doc
}

func lookup(doc bson.D, path ...string) any {
	for _, e := range doc {
		if e.Key != path[0] {
			continue
		}
		if sub, ok := e.Value.(bson.D); ok && len(path) > 1 {
			return lookup(sub, path[1:]...)
		}
		return e.Value
	}
	return nil
}

// fixtures reads an array of documents.
func fixtures(t testing.TB, path ...string) []bson.D {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{"testdata"}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Docs []bson.D }
	if err := bson.UnmarshalExtJSON(slices.Concat([]byte(`{"docs":`), text, []byte("}")), false, &list); err != nil {
		t.Fatal(err)
	}
	return list.Docs
}

// with returns doc with the value at path replaced, or removed if v is nil.
func with(doc bson.D, v any, path ...string) bson.D {
	doc = slices.Clone(doc)
	i := slices.IndexFunc(doc, func(e bson.E) bool { return e.Key == path[0] })
	switch {
	case len(path) > 1 && i >= 0:
		sub, _ := doc[i].Value.(bson.D)
		doc[i].Value = with(sub, v, path[1:]...)
	case len(path) > 1:
		doc = append(doc, bson.E{Key: path[0], Value: with(bson.D{}, v, path[1:]...)})
	case v == nil && i >= 0:
		doc = slices.Delete(doc, i, i+1)
	case i >= 0:
		doc[i].Value = v
	case v != nil:
		doc = append(doc, bson.E{Key: path[0], Value: v})
	}
	return doc
}
