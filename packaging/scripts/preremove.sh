#!/bin/sh
# Before the package is removed, not before an upgrade: deb (remove), rpm (0).
set -e
case "${1:-}" in
remove | 0) ;;
*) exit 0 ;;
esac
if [ -d /run/systemd/system ]; then
	if command -v deb-systemd-invoke >/dev/null; then
		deb-systemd-invoke stop benchwatch.service >/dev/null || true
	else
		systemctl --no-reload disable --now benchwatch.service || true
	fi
fi
