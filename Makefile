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
build: ## the static binary ./benchwatch, with the live page if there is Node.js
	@scripts/toolchain.sh go
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o benchwatch ./agent

.PHONY: test
test: ## lint, unit tests, live page and real servers; lists and installs missing packages first
	@scripts/test.sh

.PHONY: unit
unit: ## Go tests that need no installation; nothing is installed
	$(GO) test ./...

.PHONY: race
race: ## the same under the race detector
	$(GO) test -race ./...

.PHONY: lint
lint: ## golangci-lint, shellcheck, Biome
	@scripts/lint.sh

.PHONY: rules
rules: ## promtool's tests of the alert and recording rules
	$(GO) test ./tests/rules

.PHONY: mutate
mutate: ## change every rule in many ways and expect its tests to fail
	$(GO) test ./tests/rules -count 1 -timeout 1h -mutate -run TestMutations

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
e2e: ## tests on real servers: MariaDB, Galera, Prometheus
	$(GO) test -tags e2e -count 1 -p 1 -timeout 15m ./tests/e2e/...

.PHONY: test-mysql9
test-mysql9: ## tests on MySQL 9, replicas and groups, from Debian sid (100 MB)
	$(GO) run ./internal/servers/cmd unpack-mysql9
	$(GO) test -tags mysql9 -count 1 -timeout 20m ./tests/e2e/engines

.PHONY: fuzz
fuzz: ## run every fuzz test for FUZZTIME (10s)
	@scripts/fuzz.sh $(FUZZTIME)

.PHONY: bench
bench: build ## measure what observing costs; BENCHWATCH_BEFORE=FILE adds another benchwatch
	@scripts/toolchain.sh go
	@scripts/packages.sh bench
	$(GO) test -tags bench -run '^$$' -bench '$(or $(BENCH),.)' -benchtime 1x -timeout 1h ./tests/bench

.PHONY: demo
demo: ## observe a Galera cluster under load for a minute
	@scripts/demo.sh

.PHONY: clean
clean: ## remove what was built
	rm -rf benchwatch build
