# Everything that CI and a contributor need. See CONTRIBUTING.md.
GO ?= go
PKGS ?= ./...

.PHONY: all build vet lint check test sim mutations bench-main-job gate-m1 gate-m2 gate-m3

all: check

build:
	$(GO) build ./...

vet: build
	$(GO) vet ./...

lint:
	@out=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$out" ]; then echo "gofmt would change: $$out"; exit 1; fi
	$(GO) test -count=1 ./internal/lint

# The fast set: under three minutes.
check: vet lint
	$(GO) test -race -short $(PKGS)

# Everything: race detector, simulator with a sample of its mutations, process
# kills. It needs a C compiler for the race detector and nothing else.
test: vet lint
	@command -v $${CC:-cc} >/dev/null || { echo "make test needs a C compiler for the race detector: apt-get install gcc"; exit 1; }
	$(GO) test -race -timeout 25m $(PKGS)

# The simulator: every cell of protocol state and event is visited, or panics. So
# many seeds that other ones would hardly miss a cell: see what it prints last.
sim:
	$(GO) test -count=1 -v -run '^TestSimulate' ./internal/sim -args -seeds=7000 -coverage

mutations:
	$(GO) test -count=1 -v -timeout 60m -run '^TestMutations$$' ./internal/sim -args -mutations

# One command a gate of the main job.
gate-m1:
	$(GO) test -count=1 ./internal/checkpoint ./internal/ckptlog ./storage/... ./internal/sim
gate-m2: gate-m1
	$(GO) test -race -count=1 . ./codec ./internal/... ./state
gate-m3: gate-m2
	$(GO) test -race -count=1 -short ./storage/... ./connector/... ./examples/... ./accept/...

bench-main-job:
	bench/main-job.sh
