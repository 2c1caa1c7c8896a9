# shellcheck shell=bash
# What tests in a browser share: Chromium, the packages of a folder's package-lock.json,
# and the counts of node's test runner.

# chromium_find: sets CHROMIUM to its path, or leaves it empty.
chromium_find() {
	local name
	for name in chromium chromium-browser google-chrome; do
		[[ -n ${CHROMIUM:-} ]] || CHROMIUM=$(command -v "$name" || true)
	done
	export CHROMIUM
}

# npm_install WORK: in the current folder, unless it has the packages of its lock file.
npm_install() {
	cmp -s package-lock.json node_modules/.benchwatch-lock && return
	npm ci --no-audit --no-fund >"$1/npm" 2>&1 || {
		cat "$1/npm" >&2
		return 1
	}
	cp package-lock.json node_modules/.benchwatch-lock
}

# node_test WORK FILE: runs a test file, prints its output, then what failed and why, and
# sets passed and failed.
node_test() {
	local code=0
	node --test --test-reporter=tap "$2" >"$1/tap" || code=$?
	grep -E '^ *(ok|not ok|#)' "$1/tap" || true
	awk '/^ *not ok/ { print; show = 1; next }
		/^ *(ok|#)/ || /^ *(code|expected|actual|stack): / { show = 0 }
		/^ *(stack): / { where = 1; next }
		where { where = 0; print "    " $0 }
		show && !/^ *(---|\.\.\.|duration_ms|type|location|failureType)/' "$1/tap"
	passed=$(sed -nE 's/^# pass ([0-9]+)$/\1/p' "$1/tap")
	failed=$(sed -nE 's/^# fail ([0-9]+)$/\1/p' "$1/tap")
	passed=${passed:-0} failed=${failed:-1}
	return "$code"
}
