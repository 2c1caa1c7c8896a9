#!/bin/sh
# After the package was removed. deb's purge removes the configuration with what was put
# beside it, and the agent's state; runs stay, and with them the account that they
# belong to.
set -e
if [ -d /run/systemd/system ]; then
	systemctl --system daemon-reload >/dev/null || true
fi
[ "${1:-}" = purge ] || exit 0

if command -v deb-systemd-helper >/dev/null; then
	deb-systemd-helper purge benchwatch.service >/dev/null || true
fi
if [ -d /etc/benchwatch ]; then
	find /etc/benchwatch -type f ! -name benchwatch.yml | sed 's/^/benchwatch: removed /'
	rm -rf /etc/benchwatch
fi
if [ -d /var/lib/benchwatch ]; then
	rmdir --ignore-fail-on-non-empty /var/lib/benchwatch/runs /var/lib/benchwatch/sweeps 2>/dev/null || true
	find /var/lib/benchwatch -mindepth 1 -maxdepth 1 ! -name runs ! -name sweeps -exec rm -rf {} +
	rmdir --ignore-fail-on-non-empty /var/lib/benchwatch
fi
if [ ! -e /var/lib/benchwatch ] && command -v userdel >/dev/null; then
	userdel benchwatch 2>/dev/null || true
	groupdel benchwatch 2>/dev/null || true
fi
