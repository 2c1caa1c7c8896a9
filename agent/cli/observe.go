package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/exporter-toolkit/web"

	"github.com/benchwatch/benchwatch/agent/config"
	"github.com/benchwatch/benchwatch/agent/observer"
)

const (
	// defaultPort is the agent's; a run that serves itself takes it or one of
	// the next ones.
	defaultPort  = 9838
	portsToTry   = 20
	shutdownTime = 5 * time.Second
)

// observing are the flags that `run` and `agent` share.
type observing struct {
	configFile *string
	dataDir    *string
	addresses  *[]string
	webConfig  *string
	logLevel   *string
	logFormat  *string
}

func addObserving(cmd *kingpin.CmdClause, logLevel string) *observing {
	return &observing{
		configFile: cmd.Flag("config.file", "benchwatch.yml: targets, logs, Grafana.").PlaceHolder("FILE").String(),
		dataDir:    cmd.Flag("data-dir", "Where runs are kept; overrides data_dir of the configuration.").PlaceHolder("DIR").String(),
		addresses:  cmd.Flag("web.listen-address", fmt.Sprintf("Address to serve on; repeatable. Default 127.0.0.1:%d.", defaultPort)).PlaceHolder("ADDR").Strings(),
		webConfig:  cmd.Flag("web.config.file", "TLS and basic authentication, as for every exporter.").PlaceHolder("FILE").String(),
		logLevel:   cmd.Flag("log.level", "debug, info, warn or error.").Default(logLevel).Enum("debug", "info", "warn", "error"),
		logFormat:  cmd.Flag("log.format", "logfmt or json.").Default("logfmt").Enum("logfmt", "json"),
	}
}

func (o *observing) logger(s Streams) *slog.Logger {
	c := &promslog.Config{Level: promslog.NewLevel(), Format: promslog.NewFormat(), Writer: s.Err}
	_ = c.Level.Set(*o.logLevel) // kingpin has checked both
	_ = c.Format.Set(*o.logFormat)
	return promslog.New(c)
}

// load reads the configuration, or takes the defaults if none is named.
func (o *observing) load() (*config.Config, error) {
	c := config.Default()
	if *o.configFile != "" {
		var err error
		if c, err = config.Load(*o.configFile); err != nil {
			return nil, err
		}
	}
	if *o.dataDir != "" {
		c.DataDir = *o.dataDir
	}
	return c, nil
}

// listen opens the addresses asked for. Without any it tries the default port
// and, if others may be taken instead, the ones behind it.
func (o *observing) listen(others bool) ([]net.Listener, error) {
	if err := web.Validate(*o.webConfig); err != nil {
		return nil, fmt.Errorf("web configuration: %w", err)
	}
	if len(*o.addresses) > 0 {
		var ls []net.Listener
		for _, a := range *o.addresses {
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

// serve answers on the listeners until ctx is done.
func (o *observing) serve(ctx context.Context, b *observer.Observer, ls []net.Listener, log *slog.Logger) error {
	server := &http.Server{
		Handler:           b.Handler(),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	socket := false
	flags := &web.FlagConfig{WebListenAddresses: o.addresses, WebSystemdSocket: &socket, WebConfigFile: o.webConfig}
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
