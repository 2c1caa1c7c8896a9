#!/bin/sh
# Writes /config/benchwatch.yml with the targets of the running servers, and
# /config/alertmanager.yml. Runs as root in busybox at each start of the stack.
set -eu
umask 022

# runs NAME: whether the service NAME is running. Docker's DNS resolves only those.
runs() { timeout 5 nslookup "$1." >/dev/null 2>&1; }

{
	cat /agent/benchwatch.yml
	for file in /agent/targets/*.yml; do
		system=${file##*/}
		system=${system%.yml}
		server=$(sed -n 's/^ *address: \([^:]*\):.*/\1/p' "$file" | head -n 1)
		if runs "$server"; then
			echo "target: $system" >&2
			cat "$file"
		fi
	done
	for file in /local/targets/*.yml; do
		[ ! -e "$file" ] || {
			echo "target: $file" >&2
			cat "$file"
		}
	done
	# Running proxies, through which runs reach their servers.
	proxies=''
	for file in /agent/proxies/*.yml; do
		proxy=$(sed -n 's/.*address: "\([^:]*\):.*/\1/p' "$file")
		if runs "$proxy"; then
			echo "proxy: $proxy" >&2
			proxies="$proxies$(cat "$file")
"
		fi
	done
	[ -z "$proxies" ] || printf 'proxies:\n%s' "$proxies"
} >/config/benchwatch.yml.new
mv /config/benchwatch.yml.new /config/benchwatch.yml

# The routes of alerts/alertmanager.yml, with the addresses of this network.
sed -e 's|http://127\.0\.0\.1:9838/|http://agent:9838/|' \
	-e 's|credentials_file: webhook_token$|credentials_file: /secrets/webhook-token|' \
	/alertmanager.yml >/config/alertmanager.yml.new
grep -q 'url: http://agent:9838/' /config/alertmanager.yml.new
grep -q 'credentials_file: /secrets/webhook-token' /config/alertmanager.yml.new
mv /config/alertmanager.yml.new /config/alertmanager.yml
