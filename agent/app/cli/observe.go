package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/exporter-toolkit/web"

	"github.com/benchwatch/benchwatch/agent/app/observer"
)

const (
	// defaultPort is the agent's port; a run that serves its own page takes it or one of the next ones.
	defaultPort  = 9838
	portsToTry   = 20
	shutdownTime = 5 * time.Second
)

// observing are the flags of the commands that serve metrics.
type observing struct {
	dataFlags
	logFlags
	addresses    []string
	webConfig    string
	externalURL  string
	allowedHosts []string
}

func addObserving(cmd command, logLevel string) *observing {
	o := &observing{}
	o.dataFlags.declare(cmd)
	o.logFlags.declare(cmd, logLevel)
	cmd.texts(&o.addresses, "web.listen-address", "ADDR",
		fmt.Sprintf("Address of metrics and live page, else 127.0.0.1:%d; repeatable", defaultPort))
	cmd.text(&o.webConfig, "web.config.file", "FILE",
		"File that enables TLS or authentication; in the format of the Prometheus exporters")
	cmd.text(&o.externalURL, "web.external-url", "URL",
		"Address for browsers, through a proxy; it is on this machine; requests for its host are allowed")
	cmd.texts(&o.allowedHosts, "web.allowed-host", "HOST",
		"Host name accepted in requests to a loopback address, besides localhost; repeatable")
	return o
}

// listen opens the addresses of --web.listen-address. Without the flag it opens
// the default port or, if others is set, the next free one.
func (o *observing) listen(others bool) ([]net.Listener, error) {
	if err := checkWebConfig(o.webConfig); err != nil {
		return nil, fmt.Errorf("web configuration: %w", err)
	}
	if err := checkExternalURL(o.externalURL); err != nil {
		return nil, &exitError{Status: exitUsage, Err: err, Hint: "use --web.external-url=https://bench.example.com"}
	}
	if len(o.addresses) > 0 {
		var ls []net.Listener
		for _, a := range o.addresses {
			l, err := net.Listen("tcp", a)
			if err != nil {
				for _, open := range ls {
					open.Close()
				}
				return nil, withHint(fmt.Errorf("serve on %s: %w", a, err), "choose another address with --web.listen-address")
			}
			ls = append(ls, l)
		}
		return ls, nil
	}
	var first error
	for port := defaultPort; port < defaultPort+portsToTry; port++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return []net.Listener{l}, nil
		}
		if first == nil {
			first = err
		}
		if !others {
			break
		}
	}
	return nil, withHint(fmt.Errorf("serve: %w", first), "choose another address with --web.listen-address")
}

// waitTime is after how long a wait is logged.
const waitTime = 2 * time.Second

// waiting logs every two seconds what the process waits for, until the returned function is called.
func waiting(log *slog.Logger, what string) (done func()) {
	began, stop := time.Now(), make(chan struct{})
	go func() {
		tick := time.NewTicker(waitTime)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				log.Warn("still waiting", "for", what, "since", time.Since(began).Round(time.Second))
			}
		}
	}()
	return sync.OnceFunc(func() { close(stop) })
}

// logPanics logs a panic of a handler as an error. The log of the HTTP server, which strangers can
// fill with broken connections, is for debugging only.
func logPanics(log *slog.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				if err, _ := p.(error); !errors.Is(err, http.ErrAbortHandler) {
					log.Error("answer failed", "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
				}
				panic(http.ErrAbortHandler)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// serve answers on the listeners until ctx is done.
func (o *observing) serve(ctx context.Context, b *observer.Observer, ls []net.Listener, log *slog.Logger) error {
	o.warnIfOpen(ls, log)
	server := &http.Server{
		Handler:           logPanics(log, o.checkHost(b.Handler())),
		BaseContext:       func(l net.Listener) context.Context { return withListener(context.Background(), l) },
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       observer.ReadTime,
		WriteTimeout:      2 * time.Minute, // the stream of the page has its own
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	socket := false
	flags := &web.FlagConfig{WebListenAddresses: &o.addresses, WebSystemdSocket: &socket, WebConfigFile: &o.webConfig}
	stopped := context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.Background(), shutdownTime)
		defer cancel()
		if server.Shutdown(grace) != nil {
			server.Close()
		}
	})
	defer stopped()
	err := web.ServeMultiple(ls, server, flags, log)
	if errors.Is(err, http.ErrServerClosed) || ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("serve: %w", err)
}

// observation is the observer in this process; it has none if an agent has the data directory.
type observation struct {
	observer *observer.Observer
	page     string // address of its page
	parts    sync.WaitGroup
	cancel   context.CancelFunc
}

func (o *observation) stop() {
	if o.cancel != nil {
		o.cancel()
	}
	o.parts.Wait()
}

// begin starts an observer and serves it, at the default port or the next free one.
func (o *observing) begin(ctx context.Context, own *observation, opts observer.Options, s Streams) error {
	ls, err := o.listen(true)
	if err != nil {
		return err
	}
	opts.Authenticated = o.authenticated
	ready := waiting(opts.Logger, "the files of the configuration and the data directory")
	b, err := observer.New(opts)
	ready()
	if err != nil {
		ls[0].Close()
		return err
	}
	own.page = o.pageURL(ls[0])
	ctx, own.cancel = context.WithCancel(ctx)
	own.observer = b
	own.parts.Go(func() {
		if err := b.Run(ctx); err != nil {
			s.notice("%v", err)
		}
	})
	own.parts.Go(func() {
		if err := o.serve(ctx, b, ls, opts.Logger); err != nil {
			s.notice("%v", err)
		}
	})
	return nil
}
