package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// packaged is the configuration of the service in the packages.
var packaged = "/etc/benchwatch/benchwatch.yml"

// Configuration returns the file of the agent that runs on a data directory, else the file of an
// installed package; empty if there is neither.
func Configuration(dataDir string) string {
	if agent, ok := rundir.Agent(dataDir); ok && agent.Config != "" {
		return agent.Config
	}
	if _, err := os.Stat(packaged); err == nil {
		return packaged
	}
	return ""
}

// start is the command that starts the agent with a configuration.
func start(file string) string {
	if _, err := exec.LookPath("systemctl"); err == nil && file == packaged {
		return "sudo systemctl start benchwatch"
	}
	return "benchwatch agent --config.file=" + file
}

// server is a server as the agent samples it: a part of web.serverView.
type server struct {
	Name, State, Version, Role string
	Up                         bool
}

// sampled returns the servers that the agent samples, by their names. The error is errNoLogin if it
// asks for a login.
func sampled(ctx context.Context, agent rundir.AgentInfo) (map[string]server, error) {
	if agent.URL == "" {
		agent.URL = "http://" + agent.Address + "/"
	}
	var answer struct{ Servers []server }
	if _, err := get(ctx, agent.URL+"api/agent", &answer); err != nil {
		return nil, err
	}
	all := map[string]server{}
	for _, s := range answer.Servers {
		all[s.Name] = s
	}
	return all, nil
}

// samplingTime is how long Write waits for the agent to sample the servers.
const samplingTime = 5 * time.Second

// reload has the running agent read the configuration again, and waits until it samples the targets.
func (p *Plan) reload(ctx context.Context, done *Done) {
	agent, ok := rundir.Agent(p.DataDir)
	file, err := filepath.Abs(p.File)
	if !ok || err != nil || agent.Config != file {
		return
	}
	done.Agent = agent.URL
	if err := syscall.Kill(agent.PID, syscall.SIGHUP); err != nil {
		done.Problems = append(done.Problems, fmt.Sprintf("reload the agent: %v; run sudo systemctl reload benchwatch", err))
		return
	}
	ctx, cancel := context.WithTimeout(ctx, samplingTime)
	defer cancel()
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
		waiting := ""
		servers, err := sampled(context.WithoutCancel(ctx), agent)
		switch {
		case errors.Is(err, errNoLogin):
			return
		case err != nil:
			waiting = "ask the agent what it samples: " + secret.Error(err)
		}
		for i := range done.Targets {
			t := &done.Targets[i]
			s, found := servers[t.Name]
			if t.Sampled = s.Up; !s.Up && err == nil {
				waiting = fmt.Sprintf("the agent does not sample %s: %s", t.Name, s.State)
				if !found {
					waiting = fmt.Sprintf("the agent does not sample %s: its log has the reason", t.Name)
				}
			}
		}
		if waiting == "" {
			return
		}
		if ctx.Err() != nil {
			done.Problems = append(done.Problems, waiting)
			return
		}
	}
}

// share lets the group of the data directory read a file, as the service has that group. Only root
// can do that, and only root configures a service.
func (p *Plan) share(path string) error {
	info, err := os.Stat(p.DataDir)
	if err != nil || os.Geteuid() != 0 {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || st.Gid == 0 {
		return nil
	}
	return errors.Join(os.Chown(path, 0, int(st.Gid)), os.Chmod(path, 0o640))
}
