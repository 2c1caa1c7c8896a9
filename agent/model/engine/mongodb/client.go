package mongodb

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// appName is the name of the agent's connections in the server's log and in currentOp.
const appName = "benchwatch"

const (
	// connectTimeout limits one attempt to connect and one heartbeat. The tick's deadline ends the
	// wait for them earlier.
	connectTimeout = 5 * time.Second
	// heartbeatInterval is the interval at which the driver's monitor sends hello on its own
	// connection; after a failure it sends hello at each tick.
	heartbeatInterval = 10 * time.Second
	poolSize          = 2
)

// clientOptions returns the driver's options: a direct connection whatever the server's role, few
// connections, and no retries beyond the tick.
func (p *prober) clientOptions() *options.ClientOptions {
	o := options.Client().
		SetHosts([]string{p.target.Address}).
		SetDirect(true).
		SetDialer(dialer{&p.budget}).
		SetAppName(appName).
		SetMaxPoolSize(poolSize).
		SetConnectTimeout(connectTimeout).
		SetHeartbeatInterval(heartbeatInterval).
		SetServerMonitoringMode("poll").
		SetServerMonitor(p.heartbeats.monitor()).
		SetReadPreference(readpref.PrimaryPreferred()).
		SetRetryReads(false).
		SetRetryWrites(false)
	if c := credential(&p.target); c != nil {
		o.SetAuth(*c)
	}
	if p.target.TLS != nil {
		o.SetTLSConfig(p.target.TLS.Clone())
	}
	return o
}

// dialer opens connections on which a server can send a limited number of bytes per tick.
type dialer struct{ budget *engine.Budget }

// DialContext implements options.ContextDialer.
func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return d.budget.Conn(c), nil
}

// command runs a command on the database admin and returns the answer.
func (p *prober) command(ctx context.Context, name string, options ...bson.E) (document, error) {
	p.statements++
	if name == "aggregate" {
		p.queries++
	}
	cmd := append(bson.D{{Key: name, Value: 1}}, options...)
	raw, err := p.client.run(ctx, cmd)
	if err != nil {
		return nil, err
	}
	return document(raw), nil
}

// client is the driver's client with the few calls that the prober makes.
type client struct{ *mongo.Client }

// connect returns a client that connects when it is first used.
func connect(o *options.ClientOptions) (*client, error) {
	c, err := mongo.Connect(o)
	if err != nil {
		return nil, err
	}
	return &client{c}, nil
}

// run runs a command on the database admin.
func (c *client) run(ctx context.Context, command bson.D) (bson.Raw, error) {
	return c.Database("admin").RunCommand(ctx, command).Raw()
}

// find returns all documents of a small result.
func (c *client) find(ctx context.Context, database, collection string, filter any, o *options.FindOptionsBuilder) ([]bson.Raw, error) {
	cursor, err := c.Database(database).Collection(collection).Find(ctx, filter, o)
	return all(ctx, cursor, err)
}

// aggregate returns all documents of a small result.
func (c *client) aggregate(ctx context.Context, database, collection string, pipeline bson.A) ([]bson.Raw, error) {
	cursor, err := c.Database(database).Collection(collection).Aggregate(ctx, pipeline)
	return all(ctx, cursor, err)
}

// collections returns the names of the collections that the user can see.
func (c *client) collections(ctx context.Context, database string) ([]string, error) {
	return c.Database(database).ListCollectionNames(ctx, bson.M{"type": "collection"},
		options.ListCollections().SetAuthorizedCollections(true))
}

func all(ctx context.Context, cursor *mongo.Cursor, err error) (documents []bson.Raw, _ error) {
	if err == nil {
		err = cursor.All(ctx, &documents)
	}
	return documents, err
}

// documents counts a statement and returns its results.
func (p *prober) documents(raws []bson.Raw, err error) ([]document, error) {
	p.statements++
	p.queries++
	docs := make([]document, len(raws))
	for i, raw := range raws {
		docs[i] = document(raw)
	}
	return docs, err
}

// Error codes.
const (
	codeUnauthorized         = 13
	codeAuthenticationFailed = 18
	codeCommandNotFound      = 59
	codeAtlasError           = 8000 // MongoDB's cloud service: command not allowed
)

// refusals are the codes with which a server refuses a command. Any other error means that it can't
// answer now.
var refusals = []int32{
	codeUnauthorized, codeCommandNotFound, codeAtlasError,
	76,    // no replication
	94,    // not yet initialized
	115,   // command not supported
	166,   // command not supported on a view
	238,   // not implemented, on servers that only implement the protocol
	13436, // not primary or secondary: a member in its initial sync
	40324, // unknown pipeline stage
}

// refusal returns the code with which the server refused a command; false for other errors.
func refusal(err error) (code int32, refused bool) {
	var ce mongo.CommandError
	if !errors.As(err, &ce) || refusedLogin(err) {
		return 0, false
	}
	return ce.Code, slices.Contains(refusals, ce.Code)
}

// answered reports whether err is the server's answer to a command.
func answered(err error) bool {
	var ce mongo.CommandError
	return errors.As(err, &ce) && !refusedLogin(err)
}

// refusedLogin reports whether err is the answer to a login instead of a command. The driver logs
// in while it opens a connection, and wraps the answer in a connection error.
func refusedLogin(err error) bool {
	var ce mongo.CommandError
	return errors.As(err, &ce) && errors.Unwrap(ce.Wrapped) != nil
}

// lacksRight reports whether the server refused a command because a right is
// missing.
func lacksRight(err error) bool {
	code, refused := refusal(err)
	return refused && (code == codeUnauthorized || code == codeAtlasError)
}

// heartbeats holds the last result of the driver's monitor, the reason why no server can be
// selected. The driver calls it from its own goroutines.
type heartbeats struct {
	mu      sync.Mutex
	failure error  // nil after a success
	greeted bool   // one succeeded: this is a MongoDB server
	kind    string // of the server, by the driver's names, as of the last success
	cancel  context.CancelCauseFunc
}

// errStrangeHello is used for an answer to hello that the driver does not understand, since the
// driver does not report its error.
var errStrangeHello = errors.New("the answer to hello is not one of a MongoDB server")

func (h *heartbeats) monitor() *event.ServerMonitor {
	return &event.ServerMonitor{
		ServerHeartbeatSucceeded: func(e *event.ServerHeartbeatSucceededEvent) {
			if e.Reply.Kind == "Unknown" {
				h.record(errStrangeHello, "")
				return
			}
			h.record(nil, e.Reply.Kind)
		},
		ServerHeartbeatFailed: func(e *event.ServerHeartbeatFailedEvent) { h.record(e.Failure, "") },
	}
}

// record takes the result of a heartbeat. It ignores a heartbeat that the driver cancelled because
// another connection failed.
func (h *heartbeats) record(failure error, kind string) {
	if errors.Is(failure, context.Canceled) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failure = failure
	h.greeted, h.kind = h.greeted || failure == nil, kind
	if failure != nil && h.cancel != nil {
		h.cancel(failure)
	}
}

// watch returns a context that ends when a heartbeat fails. A server that refuses connections is
// then down at once, not only at the end of the tick.
func (h *heartbeats) watch(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cancel = cancel
	return ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.cancel = nil
		cancel(nil)
	}
}

// isRecovering reports whether the last heartbeat was answered by a member that is neither primary
// nor secondary nor arbiter.
func (h *heartbeats) isRecovering() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.kind == "RSOther" || h.kind == "RSGhost"
}

// last reports whether a heartbeat has ever succeeded, and returns the error of the last one, nil
// if it succeeded.
func (h *heartbeats) last() (greeted bool, failure error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.greeted, h.failure
}

// connectionID matches the driver's name of a connection in errors, which differs with each
// attempt.
var connectionID = regexp.MustCompile(`connection\([^)]*\):? ?`)

// explain turns the driver's error into one line with a remedy. The result wraps the driver's
// error.
func (p *prober) explain(err error) error {
	if refusedLogin(err) {
		return p.explainLogin(err)
	}
	greeted, last := p.heartbeats.last()
	if last != nil {
		err = last
	}
	if explained := engine.ExplainConnection(p.target.Address, err); explained != nil {
		return fmt.Errorf("mongodb: %w", explained)
	}
	text := connectionID.ReplaceAllString(err.Error(), "")
	var notTLS tls.RecordHeaderError
	switch {
	case errors.As(err, &notTLS):
		text = "the server does not speak TLS; remove tls from this target's configuration, or check the port"
	case !greeted && p.target.TLS == nil && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)):
		text = "the server closed the connection; it may require TLS, accept no more connections, or this is not MongoDB's port: " + text
	}
	return engine.Explain(err, "mongodb: %s", text)
}

// explainLogin turns a refused login into one line with a remedy.
func (p *prober) explainLogin(err error) error {
	text := connectionID.ReplaceAllString(err.Error(), "")
	var ce mongo.CommandError
	if c := credential(&p.target); p.heartbeats.isRecovering() {
		text = "no login is possible before the member has copied its data (initial sync): " + text
	} else if c != nil && errors.As(err, &ce) && ce.Code == codeAuthenticationFailed {
		text = fmt.Sprintf("login refused: user or password is wrong, or the user %q is not in database %q (option %s)",
			p.target.User, c.AuthSource, optionAuthSource)
	}
	return engine.Explain(err, "mongodb: %s", text)
}
