#!/bin/sh
# Creates a service account in Grafana and writes its token for the agent. Keeps a token
# that Grafana accepts. Runs as root in Grafana's image, after the start of Grafana.
set -eu
umask 077
url=http://grafana:3000
token=/secrets/grafana-token

# api METHOD PATH [JSON]: passes the password on standard input, not on the command line.
api() {
	printf 'user = "admin:%s"\n' "$(cat /secrets/grafana-admin-password)" |
		curl --silent --show-error --fail --max-time 20 --config - \
			--request "$1" --header 'Content-Type: application/json' ${3:+--data "$3"} "$url$2"
}

taken() {
	[ -s "$token" ] && printf 'header = "Authorization: Bearer %s"\n' "$(cat "$token")" |
		curl --silent --fail --max-time 20 --config - --output /dev/null "$url/api/annotations?limit=1"
}

# field NAME: prints a number or string of a flat JSON object.
field() { sed -n "s/.*\"$1\":\"\{0,1\}\([^\",}]*\).*/\1/p"; }

if taken; then
	echo 'the token is good'
	exit
fi
# Editor is the lowest role in Grafana that can write annotations.
account=$(api GET '/api/serviceaccounts/search?query=benchwatch' | sed 's/.*"serviceAccounts":\[//' | sed -n 's/^[^}]*"id":\([0-9]*\).*/\1/p')
[ -n "$account" ] || account=$(api POST /api/serviceaccounts '{"name":"benchwatch","role":"Editor"}' | field id)
key=$(api POST "/api/serviceaccounts/$account/tokens" "{\"name\":\"agent-$(date +%s)\"}" | field key)
[ -n "$key" ]
printf '%s\n' "$key" >"$token.new"
chown 65532:65532 "$token.new"
chmod 0400 "$token.new"
mv "$token.new" "$token"
echo 'made a token for the agent'
