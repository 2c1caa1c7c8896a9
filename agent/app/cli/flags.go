package cli

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/promslog"

	"github.com/benchwatch/benchwatch/agent/app/config"
	"github.com/benchwatch/benchwatch/agent/base/secret"
	"github.com/benchwatch/benchwatch/agent/model/tool"
)

// configFlags are the flags of the commands that read benchwatch.yml.
type configFlags struct {
	configFile *string
}

func addConfigFlags(cmd *kingpin.CmdClause) configFlags {
	return configFlags{cmd.Flag("config.file", "Configuration file, benchwatch.yml (default: none)").PlaceHolder("FILE").String()}
}

// load reads the configuration, or returns the defaults without a file.
func (f *configFlags) load() (*config.Config, error) {
	if *f.configFile == "" {
		return config.Default(), nil
	}
	return config.Load(*f.configFile)
}

// dataFlags are the flags of the commands that need the data directory.
type dataFlags struct {
	configFlags
	dataDirFlag *string
}

func addDataFlags(cmd *kingpin.CmdClause) dataFlags {
	return dataFlags{
		configFlags: addConfigFlags(cmd),
		dataDirFlag: cmd.Flag("data-dir", "Folder of the runs (default: data_dir of the configuration)").PlaceHolder("DIR").String(),
	}
}

// hintDataDir is the hint for a data directory that can't be used.
const hintDataDir = "choose another folder with --data-dir"

// load reads the configuration; --data-dir overrides its data_dir.
func (f *dataFlags) load() (*config.Config, error) {
	c, err := f.configFlags.load()
	if err == nil && *f.dataDirFlag != "" {
		c.DataDir = *f.dataDirFlag
	}
	return c, err
}

// logFlags are the flags of the commands that log.
type logFlags struct {
	logLevel  *string
	logFormat *string
}

func addLogFlags(cmd *kingpin.CmdClause, level string) logFlags {
	return logFlags{
		logLevel:  cmd.Flag("log.level", "Log messages of this level and above: debug, info, warn or error").Default(level).Enum("debug", "info", "warn", "error"),
		logFormat: cmd.Flag("log.format", "Format of log messages: logfmt or json").Default("logfmt").Enum("logfmt", "json"),
	}
}

func (f *logFlags) logger(s Streams) *slog.Logger {
	c := &promslog.Config{Level: promslog.NewLevel(), Format: promslog.NewFormat(), Writer: s.Err}
	_ = c.Level.Set(*f.logLevel) // kingpin has checked both
	_ = c.Format.Set(*f.logFormat)
	return slog.New(secret.NewHandler(promslog.New(c).Handler()))
}

// The formats that most commands have.
const (
	text       = "text"
	jsonFormat = "json"
)

// addFormat adds --format with its default first, and --json for json.
func addFormat(cmd *kingpin.CmdClause, formats ...string) *string {
	list := formats[0] + ", the only one"
	if n := len(formats) - 1; n > 0 {
		list = strings.Join(formats[:n], ", ") + " or " + formats[n]
	}
	format := cmd.Flag("format", "Format of the output: "+list).Default(formats[0]).Enum(formats...)
	cmd.Flag("json", "The same as --format=json").Hidden().PreAction(func(*kingpin.ParseContext) error {
		*format = jsonFormat
		return nil
	}).Bool()
	return format
}

// unknownTool is the usage error for a --tool that set does not have.
func unknownTool(name string, set tool.Set) error {
	hint := "known tools: " + set.Names()
	if meant := nearest(name, strings.Split(set.Names(), ", ")); meant != "" {
		hint = "did you mean --tool=" + meant + "?"
	}
	return &exitError{Status: exitUsage, Err: fmt.Errorf("unknown tool %q", name), Hint: hint}
}
