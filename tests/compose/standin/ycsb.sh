#!/bin/sh
# As YCSB's launcher, for the binding that its core has.
set -eu
case $1-$2 in
load-basic) set -- -load "$@" ;;
run-basic) set -- -t "$@" ;;
*) echo "$2: this stand-in has only the binding basic" >&2 && exit 1 ;;
esac
mode=$1
shift 3
exec java -classpath "$YCSB_HOME/lib/*" site.ycsb.Client "$mode" -db site.ycsb.BasicDB "$@"
