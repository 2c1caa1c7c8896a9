package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/promslog"

	"github.com/benchwatch/benchwatch/agent/app/config"
	"github.com/benchwatch/benchwatch/agent/app/setup"
	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/model/tool"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// configFlags are the flags of the commands that read benchwatch.yml.
type configFlags struct {
	configFile string
	// ofAgent: without --config.file the command reads the configuration of the machine's agent.
	ofAgent bool
}

func (f *configFlags) declare(cmd command) {
	otherwise := "none"
	if f.ofAgent {
		otherwise = "the configuration of the running agent or of the package"
	}
	cmd.text(&f.configFile, "config.file", "FILE", "Configuration file, benchwatch.yml (default: "+otherwise+")")
}

// load reads the configuration, or returns the defaults without a file.
func (f *configFlags) load() (*config.Config, error) {
	if f.configFile == "" && f.ofAgent {
		f.configFile = setup.Configuration(rundir.DefaultDataDir())
	}
	if f.configFile == "" {
		return config.Default(), nil
	}
	return config.Load(f.configFile)
}

// dataFlags are the flags of the commands that need the data directory.
type dataFlags struct {
	configFlags
	dataDirFlag string
}

func (f *dataFlags) declare(cmd command) {
	f.configFlags.declare(cmd)
	cmd.text(&f.dataDirFlag, "data-dir", "DIR", "Folder of runs, else in /var/lib or ~/.local/share; "+
		"$BENCHWATCH_DATA_DIR, else /var/lib/benchwatch (root or a shared agent), else benchwatch in $XDG_DATA_HOME "+
		"or ~/.local/share (default: data_dir of the configuration)")
}

// same returns the flags with which another command finds the same runs, after a space.
func (f *dataFlags) same() string {
	switch {
	case f.dataDirFlag != "":
		return " --data-dir=" + f.dataDirFlag
	case f.configFile != "":
		return " --config.file=" + f.configFile
	}
	return ""
}

// hintDataDir is the hint for a data directory that can't be used.
const hintDataDir = "choose another folder with --data-dir"

// load reads the configuration; --data-dir overrides its data_dir.
func (f *dataFlags) load() (*config.Config, error) {
	if f.configFile == "" && f.ofAgent && f.dataDirFlag != "" {
		agent, _ := rundir.Agent(f.dataDirFlag)
		f.configFile, f.ofAgent = agent.Config, false
	}
	c, err := f.configFlags.load()
	if err == nil && f.dataDirFlag != "" {
		c.DataDir = f.dataDirFlag
	}
	return c, err
}

// logFlags are the flags of the commands that log.
type logFlags struct {
	logLevel  string
	logFormat string
}

func (f *logFlags) declare(cmd command, level string) {
	f.logLevel, f.logFormat = level, "logfmt"
	cmd.choice(&f.logLevel, "log.level", "LEVEL",
		"Log messages of this level and above; debug, info, warn or error", "debug", "info", "warn", "error")
	cmd.choice(&f.logFormat, "log.format", "FORMAT", "Format of log messages: logfmt or json", "logfmt", "json")
}

func (f *logFlags) logger(s Streams) *slog.Logger {
	c := &promslog.Config{Level: promslog.NewLevel(), Format: promslog.NewFormat(), Writer: s.Err}
	_ = c.Level.Set(f.logLevel) // both were checked
	_ = c.Format.Set(f.logFormat)
	return slog.New(secret.NewHandler(promslog.New(c).Handler()))
}

// The formats that most commands have.
const (
	text       = "text"
	jsonFormat = "json"
)

// addFormat adds --format with its default first, and --json for json.
func addFormat(cmd command, format *string, formats ...string) {
	list := alternatives(formats)
	if len(formats) == 1 {
		list += ", the only one"
	}
	*format = formats[0]
	cmd.choice(format, "format", "FORMAT", "Format of the output: "+list, formats...)
	cmd.boolean("json", "The same as --format=json", func() string { return "false" }, func(bool) { *format = jsonFormat }).Hidden = true
}

// addDrainTimeout adds --drain-timeout, which leaves to at 0 for the configured time. A drain has no result without
// a second sample of the replicas, so the shortest time is the one of the configuration.
func addDrainTimeout(cmd command, to *time.Duration, help string) {
	help += "; at least 1s (default: runs.drain_timeout of the configuration)"
	cmd.flag("drain-timeout", help, value{"DURATION", func() string { return to.String() }, func(s string) (err error) {
		if *to, err = time.ParseDuration(s); err != nil || *to < time.Second {
			return errors.New("expected a duration of at least 1s; to end a drain at once, press Ctrl-C")
		}
		return nil
	}})
}

// addInject adds --no-inject, and --inject for the default.
func addInject(cmd command, inject *bool) {
	*inject = true
	cmd.toggle(inject, "inject", "Add the tool's option for a report every second").Hidden = true
	get := func() string { return strconv.FormatBool(!*inject) }
	cmd.boolean("no-inject", "Do not add the option for a report every second; where the command lacks it",
		get, func(on bool) { *inject = !on })
}

// sampling are the flags of commands that sample the servers of a tool with its login.
type sampling struct {
	sample bool
	// discover: with sample, the other members of the servers' clusters are sampled, too.
	discover bool
}

func addSampling(cmd command) *sampling {
	s := &sampling{discover: true}
	cmd.toggle(&s.sample, "sample", "Sample the tool's servers and cluster with its login; the login stays in memory")
	cmd.boolean("no-discover", "With --sample, do not sample the other members of the server's cluster",
		func() string { return strconv.FormatBool(!s.discover) }, func(on bool) { s.discover = !on })
	return s
}

// options are the flags of one run.
func (s *sampling) options() (all []string) {
	if s.sample {
		all = append(all, "--sample")
	}
	if !s.discover {
		all = append(all, "--no-discover")
	}
	return all
}

// unknownTool is the usage error for a --tool that set does not have.
func unknownTool(name string, set tool.Set) error {
	hint := "known tools: " + set.Names()
	if meant := nearest(name, strings.Split(set.Names(), ", ")); meant != "" {
		hint = "did you mean --tool=" + meant + "?"
	}
	return &exitError{Status: exitUsage, Err: fmt.Errorf("unknown tool %q", name), Hint: hint}
}
