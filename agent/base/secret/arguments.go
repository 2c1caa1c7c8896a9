package secret

import (
	"path"
	"slices"
	"strings"
)

// syntax describes how a program takes a password, in addition to options and properties with the
// name of a secret, which Arguments recognises for every program.
type syntax struct {
	// letter is the short option for the password, and valued are the other short options with a
	// value: in -vpPW the password follows p, in -hp1 it does not.
	letter byte
	valued string
	// separate: the next word can be the password. optional: the next word is the password only if
	// it is no option.
	separate, optional bool
	// user: the value is user:password.
	user bool
	// abbreviated: the client library of MySQL takes a unique beginning of --password.
	abbreviated bool
	// positional is the index of the password on a command line without options; 0: none.
	positional int
	// commands are the words that say what to do: one after --password is not its value.
	commands []string
	// owners: the value of --user is user:group.
	owners bool
	// alone: no argument is another program.
	alone bool
}

// syntaxOf returns the syntax of a program.
func syntaxOf(program string) syntax {
	name := path.Base(program)
	is := func(prefixes ...string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
	}
	switch {
	case is("mysqlslap", "mariadb-slap"):
		return syntax{letter: 'p', valued: "cehiPquSFxy", separate: true, optional: true, abbreviated: true}
	case is("mysql", "mariadb", "mycli", "innobackupex", "xtrabackup"):
		return syntax{letter: 'p', valued: "hPuSDeR", abbreviated: true} // after "-p" is the database
	case is("tpcc_"):
		return syntax{letter: 'p', valued: "hPduwcrliftmoS01234n", separate: true, positional: 3}
	case is("go-tpc", "tiup"):
		return syntax{letter: 'p', valued: "DHUPSTtd", separate: true}
	case is("mongo", "pt-"), name == "sshpass", name == "mydumper", name == "myloader", name == "cqlsh":
		return syntax{letter: 'p', valued: "hudfPSD", separate: true}
	case name == "redis-cli", name == "redis-benchmark", name == "memtier_benchmark":
		return syntax{letter: 'a', valued: "hpsnrcdtP", separate: true}
	case name == "sqlcmd", name == "bcp", name == "isql":
		return syntax{letter: 'P', valued: "SUdQqio", separate: true}
	case name == "curl":
		return syntax{letter: 'u', valued: "XHdoAebTFmxEKwrt", separate: true, user: true}
	case is("sysbench"):
		return syntax{commands: []string{"run", "prepare", "cleanup", "help", "prewarm"}, alone: true}
	case is("ycsb", "go-ycsb"):
		return syntax{alone: true}
	case name == "http", name == "https":
		return syntax{letter: 'a', separate: true, user: true}
	case name == "docker", name == "podman":
		return syntax{owners: true}
	}
	return syntax{}
}

// Arguments returns the arguments of a program with secrets blanked, and these secrets. Here a
// secret can contain blanks and quotes, since each argument is one word; Text has to assume that a
// blank ends it.
func Arguments(program string, args []string) (redacted, secrets []string) {
	w := words{syntax: syntaxOf(program), raw: args, clean: slices.Clone(args)}
	if w.owners && slices.Contains(args[:min(2, len(args))], "login") {
		w.letter, w.valued, w.separate = 'p', "u", true
	}
	if p := w.positional; p > 0 && p < len(args) && !slices.ContainsFunc(args, func(a string) bool {
		return len(a) > 1 && a[0] == '-' && a != args[p] && strings.IndexByte(w.valued+"p", a[1]) >= 0
	}) {
		w.hide(p, "", args[p])
	} else {
		w.positional = -1
	}
	for i := 0; i < len(args); i++ {
		if i == w.positional {
			continue
		}
		// An unknown program may start a known one: ssh db1 mysqlslap -px.
		isValue := i > 0 && strings.HasPrefix(args[i-1], "--") && !strings.Contains(args[i-1], "=")
		if w.letter == 0 && !w.alone && !isValue && syntaxOf(args[i]).letter != 0 {
			clean, secrets := Arguments(args[i], args[i+1:])
			copy(w.clean[i+1:], clean)
			w.secrets = append(w.secrets, secrets...)
			break
		}
		i = w.read(i)
	}
	for i := range w.clean {
		for strings.Contains(w.clean[i], Blank+Blank) { // of two secrets side by side
			w.clean[i] = strings.ReplaceAll(w.clean[i], Blank+Blank, Blank)
		}
	}
	return w.clean, w.secrets
}

type words struct {
	syntax
	raw, clean, secrets []string
}

// read blanks secrets in word i, and in the next word if it is the value of word i. It returns the
// index of the last word read.
func (w *words) read(i int) int {
	a := w.raw[i]
	last := i+1 == len(w.raw)
	option := len(a) > 1 && a[0] == '-'
	if at := w.password(a); at > 0 {
		switch {
		case at < len(a):
			if a[at] == '=' && strings.HasPrefix(a[1:at], "p=") {
				at++
			}
			w.value(i, a[:at], a[at:])
			return i
		case w.separate && !last && !(w.optional && strings.HasPrefix(w.raw[i+1], "-")):
			w.value(i+1, "", w.raw[i+1])
			return i + 1
		}
		return i
	}
	name, value, pair := strings.Cut(a, "=")
	bare := strings.TrimLeft(name, "-")
	switch at := w.pair(a); {
	case pair && isLogin(bare) && w.login(i, name+"=", value):
	case at > 0:
		w.hide(i, a[:at], a[at:])
	case !option && !pair && (a == "password" || a == "passwd") && !last:
		w.hide(i+1, "", w.raw[i+1])
		return i + 1
	case option && !pair && w.isSecret(bare) && w.takesNext(i):
		w.hide(i+1, "", w.raw[i+1])
		return i + 1
	case option && !pair && !last && isLogin(bare) && w.login(i+1, "", w.raw[i+1]):
		return i + 1
	case option && strings.HasPrefix(a, "-u") && w.login(i, a[:2], a[2:]):
	default:
		w.text(i)
	}
	return i
}

// takesNext reports whether the word after option i is its value.
func (w *words) takesNext(i int) bool {
	if i+1 == len(w.raw) || strings.HasPrefix(w.raw[i+1], "-") {
		return false
	}
	// A command after --password is the password only if the last word is a command, too.
	is := func(word string) bool { return slices.Contains(w.commands, word) }
	return !is(w.raw[i+1]) || i+2 < len(w.raw) && is(w.raw[len(w.raw)-1])
}

// password returns the index in a at which the value of the short password option begins, 0 if a
// has no such option.
func (w *words) password(a string) int {
	if w.letter == 0 || len(a) < 2 || a[0] != '-' {
		return 0
	}
	for i := 1; i < len(a) && isWord(a[i]); i++ {
		switch {
		case a[i] == w.letter:
			if i+1 < len(a) && a[i+1] == '=' && !w.abbreviated {
				return i + 2
			}
			return i + 1
		case strings.IndexByte(w.valued, a[i]) >= 0:
			return 0
		}
	}
	return 0
}

func (w *words) isSecret(name string) bool {
	return Name(name) || w.abbreviated && len(name) > 1 && strings.HasPrefix("password", name)
}

// pair returns the index in a of the value in NAME=VALUE if NAME is the name of a secret, otherwise
// 0. It also finds a property within an option: --option=NAME=VALUE.
func (w *words) pair(a string) int {
	for from := 0; ; {
		n := strings.IndexByte(a[from:], '=')
		if n < 0 {
			return 0
		}
		name, value := strings.TrimLeft(a[from:from+n], "-"), a[from+n+1:]
		if value == "" || strings.ContainsAny(name, " :/?&") {
			return 0
		}
		if from += n + 1; w.isSecret(name) && !isFolder(name, value) {
			return from
		}
	}
}

// isFolder: the shell's own PWD.
func isFolder(name, value string) bool {
	return (name == "PWD" || name == "OLDPWD") && strings.HasPrefix(value, "/")
}

// value blanks a password, or the part after the user in user:password.
func (w *words) value(i int, prefix, value string) {
	if !w.user {
		w.hide(i, prefix, value)
	} else if user, password, found := strings.Cut(value, ":"); found {
		w.hide(i, prefix+user+":", password)
	}
}

// isLogin reports whether the value of an option with this name can be user:password.
func isLogin(name string) bool {
	switch strings.ToLower(name[strings.LastIndexAny(name, "-_.")+1:]) {
	case "u", "user", "username", "userpwd", "auth", "login", "cred", "creds":
		return true
	}
	return false
}

// login blanks the password in user:password. It returns false if value has another form.
func (w *words) login(i int, prefix, value string) bool {
	user, password, ok := splitLogin(value)
	if !ok || w.owners {
		return false
	}
	w.hide(i, prefix+user+":", password)
	return true
}

// splitLogin splits user:password. It returns false for anything else, such as a URL or numeric ids
// of user and group.
func splitLogin(value string) (user, password string, ok bool) {
	user, password, ok = strings.Cut(value, ":")
	ok = ok && password != "" && !strings.HasPrefix(password, "//") && strings.Trim(user+password, "0123456789") != ""
	return user, password, ok
}

// hide blanks value, which follows prefix in word i.
func (w *words) hide(i int, prefix, value string) {
	if value == "" || value == Blank {
		return
	}
	w.clean[i] = Text(prefix) + Blank
	w.secrets = append(append(w.secrets, value), Values(value)...)
}

// text blanks in word i whatever looks like a secret.
func (w *words) text(i int) {
	a := w.raw[i]
	if !strings.ContainsAny(a, " \t\r\n") {
		if from, to, ok := userinfoOf(a); ok && a[from:to] != Blank {
			w.secrets = append(w.secrets, unescaped(a[from:to])...)
			a = a[:from] + Blank + a[to:]
		}
	}
	w.secrets = append(w.secrets, Values(a)...)
	w.clean[i] = Text(a)
}
