#!/usr/bin/env bash
# Completes the Helm chart with rules and dashboards of the repository, packs it, and writes
# everything that it can install as plain manifests.
#   chart.sh [FOLDER]    default: build/chart
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=${1:-build/chart}
version=$(<VERSION)
helm=$(scripts/gotool.sh helm.sh/helm/v3/cmd/helm@v3.22.0)
rm -rf "$out"
mkdir -p "$out"/benchwatch/files/{alerts,rules,dashboards}
cp -r deploy/helm/benchwatch "$out"
cp alerts/*.rules.yml "$out/benchwatch/files/alerts"
cp prometheus/rules/*.yml "$out/benchwatch/files/rules"
cp dashboards/*.json "$out/benchwatch/files/dashboards"
"$helm" package "$out/benchwatch" --destination "$out" >/dev/null
"$helm" template benchwatch "$out/benchwatch" --kube-version 1.30 --values deploy/manifests.yaml >"$out/benchwatch-$version.kubernetes.yaml"
