#!/bin/sh
# Writes YACE's configuration for one region and one tag.
set -eu
case $AWS_REGION in
'' | *[!a-z0-9-]*)
	echo 'set AWS_REGION to the region of the Aurora cluster, in the shell or in .env' >&2
	exit 1
	;;
esac
case $AURORA_TAG in
*[!A-Za-z0-9_.:=+@-]* | '='*) false ;;
*=*) ;;
*) false ;;
esac || {
	echo 'AURORA_TAG is the tag of the instances as key=value' >&2
	exit 1
}
sed -e "s|@region@|$AWS_REGION|g; s|@tag_key@|${AURORA_TAG%%=*}|; s|@tag_value@|${AURORA_TAG#*=}|" /aurora/yace.yml >/config/yace.yml
