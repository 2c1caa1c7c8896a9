#!/bin/sh
# As Grafana's official image: a variable that ends in __FILE names the file with its value.
set -eu
for name in $(env | sed -n 's/^\(GF_[A-Z_]*\)__FILE=.*/\1/p'); do
	eval "file=\$${name}__FILE"
	# shellcheck disable=SC2154
	export "$name=$(cat "$file")"
	unset "${name}__FILE"
done
exec grafana server --homepath /usr/share/grafana
