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
build: ## the static binary ./benchwatch, with the live page where Node.js is
	@scripts/toolchain.sh go
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o benchwatch ./agent

.PHONY: test
test: ## everything below but bench and demo; installs what is missing first
	@scripts/test.sh

.PHONY: unit
unit: ## Go tests that need no server; installs nothing
	$(GO) test ./...

.PHONY: race
race: ## the same under the race detector
	$(GO) test -race ./...

.PHONY: lint
lint: ## gofmt, go vet, staticcheck, shellcheck
	@scripts/lint.sh

.PHONY: rules
rules: ## promtool's tests of the alert and recording rules
	$(GO) test ./tests/rules

.PHONY: mutate
mutate: ## break every rule in many ways and expect its tests to notice
	$(GO) test ./tests/rules -count 1 -timeout 1h -mutate -run TestMutations

.PHONY: dashboards
dashboards: ## the dashboards are what their source generates, and are sound
	$(GO) test ./tests/dashboards

.PHONY: page
page: ## the live page in Chromium
	@tests/web/run.sh

.PHONY: grafana-test
grafana-test: ## dashboards and markers in a real Grafana (GRAFANA_URL, GRAFANA_TOKEN)
	@tests/grafana/run.sh

.PHONY: compose
compose: ## compose/ is sound, as far as that shows without Docker
	$(GO) test ./tests/compose

.PHONY: compose-test
compose-test: ## compose/ on a real Docker engine, with stand-in images
	@tests/compose/stack.sh

.PHONY: e2e
e2e: build ## on real servers: MariaDB, Galera, Prometheus
	$(GO) test -tags e2e -count 1 -p 1 -timeout 15m ./tests/e2e/...

.PHONY: test-mysql9
test-mysql9: ## replicas and groups of a real MySQL 9, fetched from Debian sid (100 MB)
	$(GO) run ./internal/servers/cmd unpack-mysql9
	$(GO) test -tags mysql9 -count 1 -timeout 20m ./tests/e2e/engines

.PHONY: fuzz
fuzz: ## every fuzz test for FUZZTIME (10s)
	@scripts/fuzz.sh $(FUZZTIME)

.PHONY: bench
bench: build ## what observing costs, beside others; BENCHWATCH_BEFORE=FILE adds another benchwatch
	@scripts/toolchain.sh go
	@scripts/packages.sh bench
	$(GO) test -tags bench -run '^$$' -bench '$(or $(BENCH),.)' -benchtime 1x -timeout 1h ./tests/bench

.PHONY: demo
demo: ## a Galera cluster under load, watched for a minute
	@scripts/demo.sh

.PHONY: clean
clean: ## remove what was built
	rm -rf benchwatch build
