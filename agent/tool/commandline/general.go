package commandline

import (
	"strings"

	"github.com/benchwatch/benchwatch/agent/secret"
)

// passwordOption is a short option that takes a password.
type passwordOption struct {
	letter byte
	// separate: the password can be the next word. (The MySQL programs' own -p
	// takes it glued only: the word behind "-p" is a database.)
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

// general redacts the words of a program of which nothing is known, words[0]
// being the program unless it is "".
func (o *outcome) general(program string, words []word) {
	short, known := optionOf(program)
	for i := 0; i < len(words); i++ {
		w := words[i]
		v := w.value
		switch name, value, pair := strings.Cut(v, "="); {
		case pair && secretPair(name, value):
			o.hide(w, name+"=", value)
		case strings.HasPrefix(v, "-") && !pair && secret.Name(strings.TrimLeft(v, "-")) && hasValue(words, i):
			i++
			o.hide(words[i], "", words[i].value)
		case known && len(v) > 2 && v[0] == '-' && v[1] == short.letter:
			short.hide(o, w, v[:2], v[2:])
		case known && short.separate && len(v) == 2 && v[0] == '-' && v[1] == short.letter && i+1 < len(words):
			i++
			short.hide(o, words[i], "", words[i].value)
		default:
			if t := secret.Text(v); t != v {
				o.redact(w, t)
				o.secrets = append(o.secrets, secret.Values(v)...)
			}
		}
	}
}

func hasValue(words []word, i int) bool {
	return i+1 < len(words) && !strings.HasPrefix(words[i+1].value, "-")
}

// secretPair reports whether name=value holds a secret in all of value. The
// shell's own PWD is a folder.
func secretPair(name, value string) bool {
	if value == "" || (name == "PWD" || name == "OLDPWD") && strings.HasPrefix(value, "/") {
		return false
	}
	return !strings.ContainsAny(name, " :/?&") && secret.Name(strings.TrimLeft(name, "-"))
}

func (p passwordOption) hide(o *outcome, w word, prefix, value string) {
	if p.user {
		user, password, found := strings.Cut(value, ":")
		if !found {
			return
		}
		prefix, value = prefix+user+":", password
	}
	o.hide(w, prefix, value)
}

// hide blanks value, which stands in w behind prefix.
func (o *outcome) hide(w word, prefix, value string) {
	if value == "" {
		return
	}
	o.redact(w, prefix+secret.Blank)
	o.secrets = append(o.secrets, value)
	if inner := secret.Values(value); len(inner) > 0 {
		o.secrets = append(o.secrets, inner...)
	}
}
