#!/usr/bin/env bash
# Lays out the files of an installed benchwatch below a folder, for packages and for
# `make install`. Everything but the binary is the same on all architectures: man page
# and completion come from RUNNABLE, a build for this machine.
#   stage.sh BINARY RUNNABLE DESTDIR PREFIX ZSH_FOLDER
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
binary=$1 runnable=$2 root=$3 prefix=$4 zsh=$5
umask 022

put() { # MODE SOURCE DESTINATION
	install -D -m "$1" "$2" "$root$3"
}
made() { # DESTINATION: from standard input
	mkdir -p "$root${1%/*}"
	cat >"$root$1"
	chmod 0644 "$root$1"
}

put 0755 "$binary" "$prefix/bin/benchwatch"
sed "s|@prefix@|$prefix|" packaging/benchwatch.service | made "$prefix/lib/systemd/system/benchwatch.service"
put 0644 packaging/sysusers.conf "$prefix/lib/sysusers.d/benchwatch.conf"
put 0644 packaging/tmpfiles.conf "$prefix/lib/tmpfiles.d/benchwatch.conf"
# What an administrator has changed stays, also after `make install`.
for file in benchwatch.yml:/etc/benchwatch/benchwatch.yml default:/etc/default/benchwatch; do
	[[ -e $root${file#*:} ]] || put 0644 "packaging/${file%%:*}" "${file#*:}"
done

"$runnable" --help-man | gzip -9n | made "$prefix/share/man/man1/benchwatch.1.gz"
"$runnable" completion bash | made "$prefix/share/bash-completion/completions/benchwatch"
"$runnable" completion zsh | made "$prefix/share/zsh/$zsh/_benchwatch"
"$runnable" completion fish | made "$prefix/share/fish/vendor_completions.d/benchwatch.fish"

share=$prefix/share/benchwatch
for file in alerts/*.yml alerts/runbooks/*.md prometheus/prometheus.yml prometheus/rules/*.yml dashboards/*.json; do
	put 0644 "$file" "$share/$file"
done
find "$root$share/alerts/runbooks" -name '*.md' -exec sed -i 's#](../../docs/#](../../../doc/benchwatch/docs/#g' {} +
put 0755 scripts/backfill.sh "$share/scripts/backfill.sh"

# README and docs/ as in the repository. The files above are in another place.
find README.md README.zh.md docs -type f | sort | while read -r file; do
	if [[ $file == *.md ]]; then
		sed -E -f packaging/links.sed -e 's#\]\(((\.\./)*)(alerts|dashboards|prometheus|scripts)/#](\1../../benchwatch/\3/#g' "$file" | made "$prefix/share/doc/benchwatch/$file"
	else
		put 0644 "$file" "$prefix/share/doc/benchwatch/$file"
	fi
done
