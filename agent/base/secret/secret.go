// Package secret keeps passwords out of what benchwatch stores, shows or
// sends.
//
// Text recognises the forms in which passwords appear in command lines,
// configuration and the output of benchmark tools. A Redactor also blanks known
// values. In doubt both blank too much rather than too little.
package secret

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Blank replaces each secret.
const Blank = "***"

// maxPasses limits how often the rules are applied: the result of one rule can match another rule.
const maxPasses = 16

// Text returns s with everything blanked that looks like a secret: passwords in URLs and DSNs,
// values of options, variables and properties with the name of a secret, the lines in which
// sysbench and tpcc-mysql print the password, SQL's IDENTIFIED BY, bearer tokens. If s has none of
// these it returns s itself, without allocating. Text(Text(s)) equals Text(s).
func Text(s string) string {
	if !textTriggers.in(s) {
		return s
	}
	for range maxPasses {
		t := pass(s)
		if t == s {
			break
		}
		s = t
	}
	return s
}

// Value returns the value of an option, property, label or variable with this name, with secrets
// blanked.
func Value(name, value string) string {
	if user, _, ok := splitLogin(value); ok && isLogin(name) {
		return Text(user) + ":" + Blank
	}
	if value != "" && Name(name) {
		return Blank
	}
	return Text(value)
}

func pass(s string) string {
	for _, r := range shapes {
		if r.triggers.in(s) {
			s = r.expr().ReplaceAllString(s, r.with)
		}
	}
	s = urls(s)
	if strings.Contains(s, "@") {
		s = logins(s)
	}
	if nameTriggers.in(s) {
		s = pairs(s)
	}
	if loginTriggers.in(s) {
		s = namedLogins(s)
	}
	if escapeTriggers.in(s) {
		s = escapes(s)
	}
	return s
}

// expression returns a regular expression that is compiled when a text first needs it. Hardly any process sees more than
// a few of the forms, and all of them together would take a third of the time that a process needs to start.
func expression(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

var (
	loginTriggers  = triggersOf("user", "auth", "login", "cred", "curl")
	escapeTriggers = triggersOf("%3a", "%3d", "%40", "%22")

	// quoted matches a quoted string. The closing quote may be missing.
	quoted = `('(?:[^'\\]|\\.|'')*'?|"(?:[^"\\]|\\.|"")*"?)`

	namedLogin = expression(`(?i)(curl\s(?:[^\n|;&]*?\s)?-u\s*|(?:user|username|userpwd|auth|login|creds?)(?:["']?[ \t]*[=:][ \t]*|[ \t]+))(["']?)([^\s:"'=/,]+):([^\s"'/,;][^\s"',;]*)`)
	escape     = expression(`%[0-9a-fA-F]{2}`)
	innerQuote = expression(`([^][{}():,;=&%])%(2[27]|60)([^][{}():,;=&%])`)
	escaped    = expression(`[^\s"'<>` + "`" + `]*%(?:3[aAdD]|40|22)[^\s"'<>` + "`" + `]*`)
)

// namedLogins blanks the password in user:password after names such as --user and auth. It keeps
// two numbers, which are a time or numeric ids, two equal words, which are a user and a group, and the host and port
// behind the blanked password of a URL whose user has such a name.
func namedLogins(s string) string {
	return namedLogin().ReplaceAllStringFunc(s, func(found string) string {
		m := namedLogin().FindStringSubmatch(found)
		if m[3] == m[4] || strings.HasPrefix(m[3], Blank+"@") || strings.Trim(m[3]+m[4], "0123456789.:") == "" {
			return found
		}
		return m[1] + m[2] + m[3] + ":" + Blank
	})
}

// escapes decodes URL escapes in words that hide a secret in them. A password can contain the code of a quote or blank,
// which would seem to end it: these are only decoded if nothing is found without them, quotes that neither begin nor end
// something last.
func escapes(s string) string {
	return escaped().ReplaceAllStringFunc(s, func(word string) string {
		guarded := word
		for range 2 { // neighbours share a character
			guarded = innerQuote().ReplaceAllString(guarded, "${1}%25${2}${3}")
		}
		for _, try := range []struct{ word, ends string }{{word, " \t\r\n\v\f\"'`<>"}, {guarded, ""}, {word, ""}} {
			plain := escape().ReplaceAllStringFunc(try.word, func(code string) string {
				c, _ := strconv.ParseUint(code[1:], 16, 8) // two hexadecimal digits
				if strings.IndexByte(try.ends, byte(c)) >= 0 {
					return code
				}
				return string([]byte{byte(c)})
			})
			if plain == word {
				continue
			}
			if clean := pass(plain); clean != plain {
				return clean
			}
		}
		return word
	})
}

// blanks blanks parts of a text from its beginning to its end.
type blanks struct {
	text    string
	blanked strings.Builder
	done    int // the end of the last part
}

func (b *blanks) add(from, to int) {
	b.blanked.WriteString(b.text[b.done:from])
	b.blanked.WriteString(Blank)
	b.done = to
}

// result returns the text itself if it has no such parts.
func (b *blanks) result() string {
	if b.done == 0 {
		return b.text
	}
	return b.blanked.String() + b.text[b.done:]
}

// shape is a fixed form in which a secret appears.
type shape struct {
	triggers *triggers
	expr     func() *regexp.Regexp
	with     string
}

// separate matches the text between an option and its value.
const separate = `(?:['"]?[\s,=]+)?`

// optionShape matches the value of a program's short option in a command line.
func optionShape(programs, option string, parts ...string) shape {
	return shape{
		triggersOf(parts...),
		expression(`((?:^|[^\w.-])` + programs + `[\w.-]*['"]?[\s,](?:[^\n|;&]*?[\s,])?['"]?` + option + `)([^\s'"]+|'[^'\n]*'?|"[^"\n]*"?)`),
		"${1}" + Blank,
	}
}

var shapes = []shape{
	{ // sysbench's --mysql-debug. A quote may be part of the password.
		triggersOf("mysql_real_connect"),
		expression(`(mysql_real_connect\([^,\n]*, "[^"\n]*", "[^"\n]*", ").*(", "[^"\n]*", [0-9]+, )`),
		"${1}" + Blank + "${2}",
	},
	{ // The same line, cut off.
		triggersOf("mysql_real_connect"),
		expression(`(mysql_real_connect\([^,\n]*, "[^"\n]*", "[^"\n]*", ")([^"\n]*)$`),
		"${1}" + Blank,
	},
	{ // tpcc-mysql's echo of its options.
		triggersOf("option p"),
		expression(`(?m)(option p with value ')(.*?)('?[ \t\r]*)$`),
		"${1}" + Blank + "${3}",
	},
	{ // HammerDB's echo of a setting that changes.
		triggersOf("pass", " from "),
		expression(`(?m)(\bChanged \w+:\w*pass\w* from ).*( for \w+)`),
		"${1}" + Blank + " to " + Blank + "${2}",
	},
	{ // HammerDB's echo of a setting that stays.
		triggersOf("pass", " is the same as existing value "),
		expression(`(?m)(\bValue ).*( for \w+:\w*pass\w* is the same as existing value ).*(, no change made)`),
		"${1}" + Blank + "${2}" + Blank + "${3}",
	},
	{ // HammerDB's scripts in Tcl.
		triggersOf("diset"),
		expression(`(\bdiset[ \t]+\w+[ \t]+\w*pass\w*[ \t]+)(\{[^}\n]*\}|"[^"\n]*"|[^\s;]+)`),
		"${1}" + Blank,
	},
	{ // HammerDB's scripts in Python.
		triggersOf("diset"),
		expression(`(\bdiset\(\s*['"]\w+['"]\s*,\s*['"]\w*pass\w*['"]\s*,\s*)` + quoted),
		"${1}'" + Blank + "'",
	},
	{ // SQL: IDENTIFIED [WITH|VIA plugin] BY|AS|USING [PASSWORD] 'x'
		triggersOf("identified"),
		expression(`(?i)(identified\s+(?:(?:with|via)\s+[^'";\n]{0,100}?\s)?(?:by|as|using)\s+(?:password\s+)?)` + quoted),
		"${1}'" + Blank + "'",
	},
	{ // Oracle and TiDB accept a name as a password.
		triggersOf("identified"),
		expression(`(IDENTIFIED\s+BY\s+(?:PASSWORD\s+)?)([^\s'";]+)`),
		"${1}" + Blank,
	},
	{ // The password that mysqld --initialize logs.
		triggersOf("temporary password"),
		expression(`(?i)(temporary password is [^\n]*: )(\S+)`),
		"${1}" + Blank,
	},
	{ // SQL: IDENTIFIED BY 'x' REPLACE 'y'
		triggersOf("identified"),
		expression(`(?i)(identified\s+(?:[^;\n]*\s)?replace\s+)` + quoted),
		"${1}'" + Blank + "'",
	},
	{ // SQL: SET PASSWORD [FOR u] = 'x'
		triggersOf("password"),
		expression(`(?i)(set\s+password\b[^;\n]*?(?:=|\sto\b)\s*)` + quoted),
		"${1}'" + Blank + "'",
	},
	{ // SQL: PASSWORD('x')
		triggersOf("password("),
		expression(`(?i)(\bpassword\(\s*)` + quoted),
		"${1}'" + Blank + "'",
	},
	{ // MongoDB's shell: db.changeUserPassword("user", "x")
		triggersOf("userpassword("),
		expression(`(?i)(userpassword\(\s*(?:"[^"\n]*"|'[^'\n]*')\s*,\s*)` + quoted),
		"${1}'" + Blank + "'",
	},
	{ // connect("host", "user", "x") in scripting languages.
		triggersOf("connect", "pdo"),
		expression(`(?i)((?:connect\w*|\bpdo)\s*\(?\s*(?:"[^"\n]*"|'[^'\n]*')\s*,\s*(?:"[^"\n]*"|'[^'\n]*')\s*,\s*)` + quoted),
		"${1}'" + Blank + "'",
	},
	{ // user:password@tcp(host:port)/db, the form of the Go MySQL driver.
		triggersOf("@"),
		expression(`([^\s"'` + "`" + `:@/=]*):\S*@([A-Za-z0-9]*\()`),
		"${1}:" + Blank + "@${2}",
	},
	{
		triggersOf("authorization"),
		expression(`(?i)(authorization["']?\s*[:=]\s*["']?(?:basic|bearer|token|digest|apikey|negotiate|ntlm|aws4-hmac-sha256)\s+)[^\s"'][^\r\n"']*`),
		"${1}" + Blank,
	},
	{
		triggersOf("bearer"),
		expression(`(?i)(\bbearer\s+)[\w.~+/=-]+`),
		"${1}" + Blank,
	},
	{ // Tokens of Grafana, GitHub, GitLab, Vault and Slack and JSON web tokens, recognised by their prefix.
		triggersOf("glsa_", "glc_", "eyj", "ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "hvs.", "xox", "npg_", "pscale_", "dop_v1_"),
		expression(`\beyJ[^\s"'<>(){},;&|]{8,}\.[\w.-]*\w|\b(?:glsa_|glc_|npg_|pscale_|dop_v1_|gh[pos]_|github_pat_|glpat-|hvs\.|xox[abp]-)[^\s"'<>()\[\]{},;&|@]*\w`),
		Blank,
	},
	{ // Addresses that are secret as a whole.
		triggersOf("hooks"),
		expression(`((?:hooks\.slack\.com/services|/api/webhooks)/)[^\s"'<>]+`),
		"${1}" + Blank,
	},
	{
		triggersOf("private key"),
		expression(`(?s)(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(-----END|$)`),
		"${1}" + Blank + "${2}",
	},
	{ // Arguments quoted by a program that rejects its options.
		triggersOf("option", "flag", "argument"),
		expression(`(?i)((?:option|flag|argument)s?[^\n]*?[\s'"` + "`" + `]-p=?)([^\s'"` + "`" + `]{4,})`),
		"${1}" + Blank,
	},
	{ // A scalar quoted by a YAML parser.
		triggersOf("!!"),
		expression("(cannot (?:unmarshal|construct|decode) !!\\w+ )`[^`\n]*`?"),
		"${1}" + Blank,
	},
	{ // MongoDB's shell: db.auth("user", "x")
		triggersOf("auth("),
		expression(`(\bauth\(\s*(?:"[^"\n]*"|'[^'\n]*')\s*,\s*)("[^"\n]*"?|'[^'\n]*'?)`),
		"${1}'" + Blank + "'",
	},
	// Command lines in one string. MySQL programs accept flags before p.
	optionShape(`(?:mysql|mariadb)`, `-[aABbCGHIjLNnorsTtvVwXz]*p`, "mysql", "mariadb"),
	optionShape(`(?:tpcc_start|tpcc_load|go-tpc|tiup|mongo|cqlsh|sshpass|mydumper|myloader|docker login|podman login)`, `-p`+separate,
		"tpc", "tiup", "mongo", "cqlsh", "sshpass", "mydumper", "myloader", "docker", "podman"),
	optionShape(`(?:redis-cli|redis-benchmark|memtier_benchmark)`, `-a`+separate, "redis-", "memtier"),
	optionShape(`(?:sqlcmd|bcp|isql)`, `-P`+separate, "sqlcmd", "bcp", "isql"),
	{ // The DSN of Percona Toolkit: h=db1,u=root,p=X
		triggersOf("p="),
		expression(`((?:^|[\s'"])(?:[A-Za-z]=[^,\s]*,)+p=)([^,\s'"]+)`),
		"${1}" + Blank,
	},
	{ // tpcc_start HOST DATABASE USER X WAREHOUSES
		triggersOf("tpcc_"),
		expression(`(tpcc_(?:start|load)[ \t]+[^\s-]\S*[ \t]+[^\s-]\S*[ \t]+[^\s-]\S*[ \t]+)([^\s-]\S*)([ \t]+[0-9])`),
		"${1}" + Blank + "${3}",
	},
}
