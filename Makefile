# Targets for people and for CI. Needs GNU make, Go and git; `make help` lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO ?= go
# The linter remembers what it found by the content of a package, with the path of the tree it found it in. Two trees
# that share a cache can so be told of files of each other, gone ones too: each checkout has its own.
export GOLANGCI_LINT_CACHE := $(CURDIR)/bin/lint-cache
LINT := $(GO) tool -modfile=tools/go.mod golangci-lint
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
TESTFLAGS ?=
PACKAGES ?= ./...
FUZZTIME ?= 30s
# Compiling is half of the work of the tests in a new checkout, and most of what it makes runs for seconds: nothing is
# inlined, and nobody debugs it. The compiler's own garbage collection was a fifth of its work. With a pattern, the
# flags are the same for one package as for all.
TESTBUILD := -vet=off -ldflags=-s -gcflags='github.com/pawl-run/pawl/...=-l -dwarf=0'
test test-all generate: export GOGC ?= 400
# Checkouts at other paths share what is compiled: each had half a gigabyte of its own in the build cache. What tests
# compile in trees of their own is found there too.
test test-all generate: export GOFLAGS := $(shell $(GO) env GOFLAGS) -trimpath
# The program is released without cgo, and starts faster so. Only the race detector needs it.
test test-all generate: export CGO_ENABLED ?= $(if $(filter -race,$(TESTFLAGS)),1,0)
# make test tries properties with the same cases each time. RAPID_SEED=0 draws others, as make test-all does.
test: export RAPID_SEED ?= 1
# Packages are run in this order: the longest first, so that none runs alone in the end.
LONGEST := ./internal/surface/compose ./internal/cycle/engine ./internal/surface/cli ./internal/record/store ./internal/ground/proc

.PHONY: help demo build test test-all test-rest test-agents generate lint check cross bench bench-always bench-million fuzz mutants mutants-listed postgres

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: ## watch a loop turn a red test green: no key, no network
	@$(GO) build -o bin/pawl ./cmd/pawl
	@bin/pawl demo

build: ## bin/pawl as it is released: static, stripped, reproducible
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w -X github.com/pawl-run/pawl/internal/surface/cli.version=$(VERSION)" -o bin/pawl ./cmd/pawl

# make lint has vet. Many tests wait for a process, a lease or a server: two packages more than there are cores keep these busy.
# With one more they were idle for a seventh of the time, as one of the packages is often proc, which waits for five sixths of its own.
test: postgres ## every test, on SQLite and PostgreSQL (TESTFLAGS="-run X -v")
	tools/testtmp.sh tools/summary.sh $(GO) test -p $$(( $$(getconf _NPROCESSORS_ONLN) + 2 )) -timeout 1h $(TESTBUILD) $(TESTFLAGS) $(LONGEST) ./...

# Each test of the sweep adds its table to the file; the tables are printed also
# when something failed.
test-all: postgres ## every test with all that it can try: faults at every point, a machine asleep for 60 s (half an hour and more)
	@tables=$$(mktemp); trap 'cat "$$tables"; rm -f "$$tables"' EXIT; \
	PAWL_TEST_ALL=$$tables tools/testtmp.sh tools/summary.sh $(GO) test -count=1 -timeout 3h $(TESTBUILD) $(TESTFLAGS) $(PACKAGES)

# Nobody waits for what chance finds in others' work: states that are drawn are the same ones each time. Stopped
# processes leave a processor idle until their lease is over, and the longest packages begin first.
test-rest: ## what test-all has beyond test: each test that tries only a sample there, in full
	@rest=$$($(GO) run ./internal/test/sampled); \
	PAWL_TEST_SEED=1 $(MAKE) --no-print-directory test-all PACKAGES="$(LONGEST) $$(head -1 <<<"$$rest")" TESTFLAGS="-p $$(( $$(getconf _NPROCESSORS_ONLN) + 1 )) -parallel $$(( $$(getconf _NPROCESSORS_ONLN) * 3 )) -run '$$(tail -1 <<<"$$rest" | sed 's/\$$/$$$$/g')' $(TESTFLAGS)"

test-agents: ## each real agent program through whole runs, no key (15 minutes on 2 busy cores; npm installs them into a cache; needs Linux)
	@dir=$$(tools/agents.sh) && echo "PAWL_TEST_AGENTS=$$dir" && \
	PAWL_TEST_AGENTS=$$dir $(GO) test -tags agents -count=1 -timeout 30m ./internal/test/agente2e $(TESTFLAGS)

# Tests that draw have Drawn in their names, and import package drawn or replay recordings with it. Nothing else is built.
generate: ## rewrite what the code draws: tables of docs/, sqlite.sql, golden files (ALL=1: also the messages of faults, 6 minutes)
	tools/testtmp.sh $(GO) test -count=1 -timeout 1h $(TESTBUILD) -run Drawn $(if $(ALL),,-skip DrawnSlowly) \
		$$(grep -rlE --include='*_test.go' 'internal/test/drawn"|agenttest\.Replay\(' internal | xargs -n1 dirname | sort -u | sed 's|^|./|') -update

lint: ## layout, linters and the layers of the packages
	@out=$$(gofmt -l cmd internal); if [ -n "$$out" ]; then echo "not formatted, run gofmt -w on:"; echo "$$out"; exit 1; fi
	$(LINT) run ./...
	$(GO) test ./internal/arch

check: lint test cross ## all that must hold before a commit

cross: ## compile for every platform that pawl is promised for
	@for p in $(PLATFORMS); do \
		echo "build $$p"; \
		GOOS=$${p%/*} GOARCH=$${p#*/} CGO_ENABLED=0 $(GO) build -o /dev/null ./...; \
	done

# RECORD=1 keeps the table in bench/, and each table is printed beside the newest one that was kept.
bench bench-million bench-always: export PAWL_BENCH_RECORD := $(if $(RECORD),$(VERSION))

bench: postgres ## measure the runtime against its targets, beside bare baselines (RECORD=1 keeps the table in bench/)
	@$(GO) test -run '^$$' -bench '^BenchmarkTable$$' -benchtime 1x -timeout 20m ./internal/bench

bench-million: postgres ## a store with a million runs: copied, backed up, read (half an hour; PAWL_BENCH_RUNS for fewer, 25 GB of disk)
	@$(GO) test -run '^$$' -bench '^BenchmarkMillion$$' -benchtime 1x -timeout 120m ./internal/bench

bench-always: postgres ## ten thousand loops of mixed cadences for 10 minutes on each store, and 10 idle ones (PAWL_BENCH_MINUTES, PAWL_BENCH_LOOPS for fewer)
	@$(GO) test -run '^$$' -bench '^BenchmarkAlways$$' -benchtime 1x -timeout 180m ./internal/bench

fuzz: ## each fuzz target for FUZZTIME (30s)
	@grep -rHoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' internal | sort | while IFS=: read -r file func; do \
		name=$${func#func }; \
		echo "fuzz $$name in $$(dirname "$$file")"; \
		$(GO) test -run '^$$' -fuzz "^$$name$$" -fuzztime $(FUZZTIME) "./$$(dirname "$$file")" </dev/null; \
	done

mutants-listed: postgres ## take out one guardrail at a time and see a test fail (minutes)
	$(GO) test -tags mutants -count=1 -timeout 60m -run '^TestEachListedMutantIsCaught$$' -v ./internal/arch

mutants: postgres ## plant small bugs and count those that a test notices (20 minutes; PKG=store N=30 SEED=2 AT=file:line AGAIN=1; MUTANTS=all: at night)
	@$(GO) run ./internal/test/mutants $(if $(filter all,$(MUTANTS)),-all) $(if $(PKG),-pkg $(PKG)) $(if $(N),-n $(N)) $(if $(SEED),-seed $(SEED)) \
		$(if $(AT),-at $(AT)) $(if $(AGAIN),-again) $(if $(TESTS),-tests $(TESTS)) $(if $(ENTRIES),-entries)

# The tests need the server's programs, not a running server.
postgres:
	@if ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null 2>&1; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
		echo "PostgreSQL's initdb is not installed; installing Debian's package postgresql"; \
		apt-get update -qq; \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql </dev/null; \
		exit 0; \
	fi; \
	echo "The tests run on PostgreSQL too, and its initdb is neither in /usr/lib/postgresql/*/bin nor in PATH." >&2; \
	echo "Fix: sudo apt-get install postgresql   (macOS: brew install postgresql@17, then put its bin in PATH)" >&2; \
	exit 1
