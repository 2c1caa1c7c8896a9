package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/benchwatch/benchwatch/agent/app/config"
	"github.com/benchwatch/benchwatch/agent/app/setup"
	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/base/terminal"
	engines "github.com/benchwatch/benchwatch/agent/model/engine/registry"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// initCommand is one `benchwatch init`.
type initCommand struct {
	plan         setup.Plan
	targets      []string
	passwordFile string
	adminFile    string
	ask          bool
	format       string

	streams Streams
	in      *bufio.Reader
}

func newInit() *cobra.Command {
	cmd := newCommand("init", "Write a configuration and test it. It prompts, creates a token for Grafana, and imports the dashboards.",
		"benchwatch init --target=mysql://monitor@10.0.0.1?cluster=blue --password-file=monitor.password --yes")
	r := &initCommand{}
	cmd.text(&r.plan.File, "config.file", "FILE",
		"File to write (default: the configuration of the running agent or of the package, else benchwatch.yml)")
	cmd.text(&r.plan.DataDir, "data-dir", "DIR", "Folder of the runs (default: the folder that is used without a configuration)")
	cmd.texts(&r.targets, "target", "URL", "Server to sample, ENGINE://USER@HOST[:PORT]; also ?cluster=NAME&name=NAME; repeatable")
	cmd.text(&r.passwordFile, "password-file", "FILE", "File with the password of the servers of --target")
	cmd.text(&r.plan.Grafana.URL, "grafana.url", "URL", "Grafana that gets markers and dashboards (default: none)")
	cmd.text(&r.plan.Grafana.TokenFile, "grafana.token-file", "FILE", "File with the token of a service account")
	cmd.text(&r.plan.Grafana.User, "grafana.user", "NAME", "Grafana user that can create a service account, if there is no token")
	cmd.text(&r.adminFile, "grafana.password-file", "FILE", "File with the password of this user")
	r.plan.Grafana.Folder = "benchwatch"
	cmd.text(&r.plan.Grafana.Folder, "grafana.folder", "NAME", "Folder for the dashboards; empty: import none")
	cmd.text(&r.plan.Prometheus, "prometheus.url", "URL", "Prometheus that scrapes the agent (default: none)")
	cmd.toggle(&r.plan.Replace, "force", "Overwrite an existing configuration; or sections of the agent's configuration")
	cmd.toggle(&r.ask, "yes,y", "Do not prompt (the default without a terminal)")
	addFormat(cmd, &r.format, text, jsonFormat)
	return cmd.does(func(s Streams) error {
		r.streams, r.in = s, bufio.NewReader(io.LimitReader(s.In, maxAnswers))
		return r.run()
	})
}

func (r *initCommand) run() error {
	if err := r.chooseFile(); err != nil {
		return err
	}
	if _, err := os.Stat(r.plan.File); err == nil && !r.plan.Replace && !r.plan.Keep {
		return withHint(fmt.Errorf("write %s: the file exists", r.plan.File),
			"name another file with --config.file, or replace it with --force")
	}
	if err := r.flags(); err != nil {
		return err
	}
	if !r.ask && terminal.IsTerminal(r.streams.In) {
		if err := r.questions(); err != nil {
			return err
		}
	}
	if r.plan.DataDir == "" {
		r.plan.DataDir = config.Default().DataDir
	}
	var err error
	if r.plan.DataDir, err = filepath.Abs(r.plan.DataDir); err != nil {
		return err
	}
	if r.plan.Grafana.TokenFile != "" {
		if r.plan.Grafana.TokenFile, err = filepath.Abs(r.plan.Grafana.TokenFile); err != nil {
			return err
		}
	}
	if err := setup.Writable(r.plan.DataDir); err != nil {
		return withHint(fmt.Errorf("data directory: %w", err), hintDataDir)
	}
	if err := errors.Join(checkURL("--grafana.url", r.plan.Grafana.URL), checkURL("--prometheus.url", r.plan.Prometheus)); err != nil {
		return err
	}
	// Not before: a question that waits for its answer must end by Ctrl-C.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	done, err := r.plan.Write(ctx)
	switch {
	case errors.Is(err, setup.ErrExists):
		return withHint(err, "edit the file, or replace what it has with --force")
	case err != nil:
		return fmt.Errorf("init: %w", err)
	}
	if r.format == jsonFormat {
		err = table.JSON(r.streams.Out, done)
	} else {
		r.print(done)
	}
	if err == nil && len(done.Problems) > 0 {
		return &exitError{Status: exitFailure}
	}
	return err
}

// chooseFile finds the configuration of this machine's agent, unless the user names a file or another
// data directory.
func (r *initCommand) chooseFile() error {
	file := ""
	if r.plan.File == "" && r.plan.DataDir == "" {
		file = setup.Configuration(rundir.DefaultDataDir())
	}
	if file == "" {
		r.plan.File = cmp.Or(r.plan.File, "benchwatch.yml")
		return nil
	}
	c, err := config.Load(file)
	if err != nil {
		return err
	}
	if err := setup.Writable(filepath.Dir(file)); err != nil {
		return withHint(fmt.Errorf("configuration of the agent: %w", err),
			"run sudo benchwatch init; a configuration of your own needs --config.file and --data-dir")
	}
	r.plan.File, r.plan.DataDir, r.plan.Keep = file, c.DataDir, true
	return nil
}

// flags completes the plan with the values of the flags.
func (r *initCommand) flags() error {
	for _, text := range r.targets {
		t, err := setup.ParseTarget(text)
		if err != nil {
			return &exitError{Status: exitUsage, Err: fmt.Errorf("--target %s: %w", secret.Text(text), err),
				Hint: "benchwatch init --target=mysql://monitor@10.0.0.1:3306?cluster=blue"}
		}
		one := setup.PlannedTarget{Target: t}
		if r.passwordFile != "" {
			password, err := secret.ReadPassword(r.passwordFile)
			if err != nil {
				return err
			}
			if r.plan.Keep { // the agent may not be able to read the user's file
				one.Password = password
			} else if one.PasswordFile, err = filepath.Abs(r.passwordFile); err != nil {
				return err
			}
		}
		r.plan.Targets = append(r.plan.Targets, one)
	}
	var err error
	if r.adminFile != "" {
		r.plan.Grafana.Password, err = secret.ReadPassword(r.adminFile)
	}
	return err
}

// questions prompts for what the flags do not have.
func (r *initCommand) questions() error {
	if r.plan.DataDir == "" {
		r.plan.DataDir = r.question("Folder of the runs", config.Default().DataDir)
	}
	for len(r.targets) == 0 {
		address := r.question("Address of a server to sample, host[:port] (empty: no more)", "")
		if address == "" {
			break
		}
		engine := r.question("Its engine: "+engines.Described(), engines.Engines[0].Name)
		user := r.question("User", "benchwatch")
		t, err := setup.ParseTarget(engine + "://" + user + "@" + address)
		if err != nil {
			r.streams.notice("%v", err)
			continue
		}
		one := setup.PlannedTarget{Target: t, Password: r.secretQuestion("Password of " + user)}
		one.Cluster = r.question("Name of its cluster, if others replicate with it", "")
		r.plan.Targets = append(r.plan.Targets, one)
	}
	if r.plan.Grafana.URL == "" {
		if r.plan.Grafana.URL = r.question("URL of a Grafana for markers and dashboards (empty: none)", ""); r.plan.Grafana.URL != "" {
			r.plan.Grafana.User = r.question("Grafana user that can create a service account", "admin")
			r.plan.Grafana.Password = r.secretQuestion("Password of " + r.plan.Grafana.User)
		}
	}
	if r.plan.Prometheus == "" {
		r.plan.Prometheus = r.question("URL of the Prometheus that scrapes the agent (empty: none)", "")
	}
	return nil
}

// maxAnswers bounds what is read of all answers together, in bytes.
const maxAnswers = 1 << 20

// question returns the answer, or otherwise if that is empty.
func (r *initCommand) question(text, otherwise string) string {
	if otherwise != "" {
		text += " [" + otherwise + "]"
	}
	fmt.Fprintf(r.streams.Err, "%s: ", text)
	answer, err := r.in.ReadString('\n')
	if answer = strings.TrimSpace(answer); answer == "" {
		if err != nil {
			fmt.Fprintln(r.streams.Err)
		}
		return otherwise
	}
	return answer
}

// secretQuestion returns an answer that is not shown.
func (r *initCommand) secretQuestion(text string) string {
	fmt.Fprintf(r.streams.Err, "%s (not shown): ", text)
	line := func() (string, error) { return r.in.ReadString('\n') }
	var answer string
	var err error
	if f, ok := r.streams.In.(*os.File); ok {
		answer, err = terminal.ReadSecret(f, line)
	} else {
		answer, err = line()
	}
	fmt.Fprintln(r.streams.Err)
	if err != nil {
		return ""
	}
	return strings.TrimRight(answer, "\r\n")
}

func (r *initCommand) print(done *setup.Done) {
	out := r.streams.Out
	fmt.Fprintf(out, "wrote %s\n", done.File)
	readers := "its owner"
	if r.plan.Keep {
		readers = "root and the agent"
	}
	for _, file := range done.Secrets {
		fmt.Fprintf(out, "wrote %s, which only %s can read\n", file, readers)
	}
	for _, t := range done.Targets {
		if t.Answers {
			fmt.Fprintf(out, "%s (%s) answers: %s %s\n", t.Name, t.Address, t.Version, t.Role)
		}
		if t.Sampled {
			fmt.Fprintf(out, "the agent samples %s\n", t.Name)
		}
	}
	if n := len(done.Dashboards); n > 0 {
		fmt.Fprintf(out, "imported %s\n", table.Plural(n, "dashboard"))
	}
	for _, w := range done.Warnings {
		r.streams.line("benchwatch: " + w)
	}
	for _, p := range done.Problems {
		r.streams.line("benchwatch: " + p)
	}
	doctor, next := "benchwatch doctor", "benchwatch run -- sysbench oltp_read_write --threads=16 --time=60 run"
	if !r.plan.Keep {
		doctor += " --config.file=" + done.File
	}
	if done.Agent == "" {
		next = done.Start
	}
	fmt.Fprintf(out, "\nPrometheus needs this in its configuration:\n\n%s\nNext:\n  %s\n  %s\n", done.ScrapeConfig, next, doctor)
}

// checkURL returns an error if the value of a flag is not an address.
func checkURL(flag, address string) error {
	if err := config.CheckURL(address); err != nil {
		return &exitError{Status: exitUsage, Err: fmt.Errorf("%s %s: %w", flag, secret.Text(address), err),
			Hint: "for example " + flag + "=http://127.0.0.1:3000"}
	}
	return nil
}
