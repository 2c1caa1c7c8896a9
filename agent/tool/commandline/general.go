package commandline

import (
	"strings"

	"github.com/benchwatch/benchwatch/agent/secret"
)

// passwordOption is a short option that takes a password.
type passwordOption struct {
	letter byte
	// separate: the password can be the next word. (The MySQL programs' own -p
	// takes it glued only: the word after "-p" is a database.)
	separate bool
	// user: the value is user:password.
	user bool
}

// optionOf returns the password option of a program that is no tool.
func optionOf(program string) (passwordOption, bool) {
	name := base(program)
	switch {
	case strings.HasPrefix(name, "mysql"), strings.HasPrefix(name, "mariadb"), name == "mycli", name == "innobackupex", name == "xtrabackup":
		return passwordOption{letter: 'p'}, true
	case strings.HasPrefix(name, "mongo"), strings.HasPrefix(name, "tpcc_"), strings.HasPrefix(name, "pt-"),
		name == "go-tpc", name == "sshpass", name == "mydumper", name == "myloader":
		return passwordOption{letter: 'p', separate: true}, true
	case name == "redis-cli", name == "redis-benchmark", name == "memtier_benchmark":
		return passwordOption{letter: 'a', separate: true}, true
	case name == "sqlcmd", name == "bcp":
		return passwordOption{letter: 'P', separate: true}, true
	case name == "curl":
		return passwordOption{letter: 'u', separate: true, user: true}, true
	}
	return passwordOption{}, false
}

// general redacts the words from index from up to index to, of a program of which
// nothing is known: words[from], unless its name is "".
func (o *outcome) general(program string, words []string, from, to int) {
	short, known := optionOf(program)
	for i := from; i < to; i++ {
		v := words[i]
		hasNext := i+1 < to
		switch name, value, pair := strings.Cut(v, "="); {
		case pair && secretPair(name, value):
			o.hide(words, i, name+"=", value)
		case strings.HasPrefix(v, "-") && !pair && secret.Name(strings.TrimLeft(v, "-")) && hasNext && !strings.HasPrefix(words[i+1], "-"):
			i++
			o.hide(words, i, "", words[i])
		case known && len(v) > 2 && v[0] == '-' && v[1] == short.letter:
			short.hide(o, words, i, v[:2], v[2:])
		case known && short.separate && len(v) == 2 && v[0] == '-' && v[1] == short.letter && hasNext:
			i++
			short.hide(o, words, i, "", words[i])
		default:
			if t := secret.Text(v); t != v {
				o.redact(words, i, t)
				o.secrets = append(o.secrets, secret.Values(v)...)
			}
		}
	}
}

// secretPair reports whether name=value holds a secret in all of value. The
// shell's own PWD is a folder.
func secretPair(name, value string) bool {
	if value == "" || (name == "PWD" || name == "OLDPWD") && strings.HasPrefix(value, "/") {
		return false
	}
	return !strings.ContainsAny(name, " :/?&") && secret.Name(strings.TrimLeft(name, "-"))
}

func (p passwordOption) hide(o *outcome, words []string, i int, prefix, value string) {
	if p.user {
		user, password, found := strings.Cut(value, ":")
		if !found {
			return
		}
		prefix, value = prefix+user+":", password
	}
	o.hide(words, i, prefix, value)
}

// hide blanks value, which follows prefix in the word at i.
func (o *outcome) hide(words []string, i int, prefix, value string) {
	if value == "" {
		return
	}
	o.redact(words, i, prefix+secret.Blank)
	o.secrets = append(append(o.secrets, value), secret.Values(value)...)
}
