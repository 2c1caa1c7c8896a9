package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/benchwatch/benchwatch/agent/model/table"
)

// healthCommand is `benchwatch health`. Images of the agent contain no other
// program that could do a health check.
type healthCommand struct {
	address string
	timeout time.Duration
	format  string
}

// health is what `health --format=json` prints about a healthy agent.
type health struct {
	Healthy bool `json:"healthy"`
	// Address of the agent.
	Address string `json:"address"`
}

func newHealth() *cobra.Command {
	cmd := newCommand("health", "Check that an agent is healthy. It exits with 0 if it is, else with 1, for health checks of containers.",
		"benchwatch health --address=127.0.0.1:9838")
	h := &healthCommand{}
	h.address = "127.0.0.1:9838"
	cmd.text(&h.address, "address", "ADDR", "Address of the agent: host:port or a URL")
	h.timeout = 3 * time.Second
	cmd.duration(&h.timeout, "timeout", "Wait at most this long for the answer")
	addFormat(cmd, &h.format, text, jsonFormat)
	return cmd.does(h.run)
}

func (h *healthCommand) run(s Streams) error {
	target, err := healthURL(h.address)
	if err != nil {
		return &exitError{Status: exitUsage, Err: err, Hint: "use --address=127.0.0.1:9838"}
	}
	ctx, cancel := context.WithTimeout(context.Background(), h.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return fmt.Errorf("check health: %w", err)
	}
	// Ignore proxies of the environment: the agent is on this machine.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if errors.Is(err, syscall.ECONNREFUSED) {
		err = fmt.Errorf("no agent answers at %s", request.URL.Host)
	}
	if err != nil {
		return withHint(fmt.Errorf("check health: %w", err), "start an agent, or give its address with --address")
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 4096))
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("check health: the agent at %s answers %s", h.address, response.Status)
	}
	if h.format == jsonFormat {
		return table.JSON(s.Out, health{Healthy: true, Address: h.address})
	}
	return nil
}

// healthURL returns the URL of the agent's health. Like --web.listen-address, it accepts ":9838".
func healthURL(given string) (string, error) {
	address := given
	if !strings.Contains(address, "://") {
		if strings.HasPrefix(address, ":") {
			address = "127.0.0.1" + address
		}
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("%q is not an address", given)
	}
	return u.JoinPath("/-/healthy").String(), nil
}
