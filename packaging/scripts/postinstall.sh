#!/bin/sh
# After the installation or an upgrade: deb (configure), rpm (1 or 2) and apk.
set -e

# The account, with or without systemd.
if ! getent passwd benchwatch >/dev/null; then
	if command -v systemd-sysusers >/dev/null; then
		systemd-sysusers benchwatch.conf
	elif command -v useradd >/dev/null; then
		useradd --system --user-group --home-dir /var/lib/benchwatch --no-create-home \
			--shell /usr/sbin/nologin --comment 'benchwatch agent' benchwatch
	else # Alpine
		addgroup -S benchwatch
		adduser -S -D -H -h /var/lib/benchwatch -s /sbin/nologin -G benchwatch -g 'benchwatch agent' benchwatch
	fi
fi

# The folders, as systemd-tmpfiles makes them where it is.
while read -r type path mode user group _; do
	[ "$type" = d ] || continue
	mkdir -p "$path"
	chown "$user:$group" "$path"
	chmod "$mode" "$path"
done </usr/lib/tmpfiles.d/benchwatch.conf

# Not after an upgrade: deb (configure without an old version), rpm (1), apk (the version).
case "${1:-} ${2:-}" in
"configure "?* | "2 "*) ;;
*)
	echo 'benchwatch: the agent serves its page at http://127.0.0.1:9838; sudo benchwatch init adds servers'
	echo 'benchwatch: to see a recorded run as if it were live: benchwatch replay'
	;;
esac

if command -v deb-systemd-helper >/dev/null; then
	deb-systemd-helper unmask benchwatch.service >/dev/null || true
	if deb-systemd-helper --quiet was-enabled benchwatch.service; then
		deb-systemd-helper enable benchwatch.service >/dev/null || true
	else
		deb-systemd-helper update-state benchwatch.service >/dev/null || true
	fi
	if [ -d /run/systemd/system ]; then
		systemctl --system daemon-reload >/dev/null || true
		if [ -n "${2:-}" ]; then action=restart; else action=start; fi
		deb-systemd-invoke "$action" benchwatch.service >/dev/null || true
	fi
elif [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
	if [ "${1:-}" = 1 ]; then
		systemctl preset benchwatch.service || true
	else
		systemctl try-restart benchwatch.service || true
	fi
fi
