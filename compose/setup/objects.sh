#!/bin/sh
# Starts versitygw, an S3 server, with the bucket that Thanos uses. Runs in its image.
set -eu
umask 077

mkdir -p /objects/blocks
ROOT_ACCESS_KEY=benchwatch ROOT_SECRET_KEY=$(cat /secrets/objects-password)
export ROOT_ACCESS_KEY ROOT_SECRET_KEY
PATH=$PATH:/usr/local/bin:/app
exec versitygw --port :7070 --health /health --quiet posix /objects
