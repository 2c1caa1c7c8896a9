# shellcheck shell=bash
# Keeps Debian packages from starting or enabling services while they are being
# installed. Sourced after process.sh, used by root.

POLICY=${BENCHWATCH_POLICY:-/usr/sbin/policy-rc.d}
POLICY_SAVED=$POLICY.before-benchwatch

# policy_guard: denies every start until policy_restore. A guard that outlives its
# script (kill -9) notices it, and steps aside for the policy that was there before.
policy_guard() {
	policy_restore
	! policy_denies || return 0
	cat >"$POLICY.new" <<-END
		#!/bin/sh
		# Made by benchwatch's scripts/packages.sh, for as long as it runs.
		if [ "\$(cut -d ' ' -f 22 /proc/$$/stat 2>/dev/null)" = "$(process_stat $$ 22)" ]; then exit 101; fi
		if [ -x "\$0.before-benchwatch" ]; then exec "\$0.before-benchwatch" "\$@"; fi
		exit 0
	END
	chmod 0755 "$POLICY.new"
	[[ ! -e $POLICY && ! -L $POLICY ]] || mv "$POLICY" "$POLICY_SAVED"
	mv "$POLICY.new" "$POLICY"
}

# policy_denies: 101 is "forbidden"; the policies of most containers say that already.
policy_denies() {
	local code=0
	[[ -x $POLICY ]] || return 1
	"$POLICY" benchwatch start >/dev/null 2>&1 || code=$?
	((code == 101))
}

# policy_restore: also after a script that was killed.
policy_restore() {
	if [[ -f $POLICY ]] && grep -q "Made by benchwatch's" "$POLICY"; then rm -f "$POLICY"; fi
	if [[ -e $POLICY_SAVED || -L $POLICY_SAVED ]]; then mv "$POLICY_SAVED" "$POLICY"; fi
	rm -f "$POLICY.new"
}

# services_enabled: the links that start a service with the machine, one a line.
services_enabled() {
	{
		find /etc/systemd/system -path '*.wants/*' -type l
		find /etc/rc[2-5].d -name 'S*'
	} 2>/dev/null | LC_ALL=C sort
}

# services_disable FILE: disables what has been enabled since services_enabled was
# written to FILE.
services_disable() {
	local link
	while read -r link; do
		case $link in
		*/rc[2-5].d/S*)
			link=${link##*/S??}
			update-rc.d "$link" disable >/dev/null 2>&1 || note "could not disable the service $link"
			;;
		*)
			if command -v systemctl >/dev/null; then systemctl disable "${link##*/}" >/dev/null 2>&1 || true; fi
			rm -f "$link"
			;;
		esac
	done < <(services_enabled | LC_ALL=C comm -13 "$1" -)
}
