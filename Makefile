# Everything here needs Go and make only; the race detector also a C compiler.
GO ?= go
export CGO_ENABLED ?= 0

.PHONY: build run test race lint sim mutants soak bench bench-jobs bench-defaults bench-peers fuzz generate clean

build:
	$(GO) build -trimpath -ldflags=-s -o bin/volley ./cmd/volley

# Trains on made-up data, BSP beside A-BSP with one executor at half speed.
run: build
	bin/volley generate logistic --rows 60000 --features 40 --eps 0.2 --out bin/train.libsvm
	$(GO) run ./examples/09-compare --input bin/train.libsvm

test:
	$(GO) vet ./...
	$(GO) test -timeout 15m ./...

race:
	@if command -v cc >/dev/null || command -v gcc >/dev/null; then \
		CGO_ENABLED=1 $(GO) test -race -short -timeout 30m ./...; \
	else echo "race: no C compiler, skipped"; fi

lint:
	$(GO) test ./internal/lint

# make sim SEEDS=2000 FROM=1 [BUG=1..]: the control plane in virtual time. Bugs are planted in a build of their own.
SEEDS ?= 200
FROM ?= 1
BUG ?= 0
sim:
	$(GO) run $(if $(filter-out 0,$(BUG)),-tags mutants) ./internal/sim/simulate -seeds $(SEEDS) -from $(FROM) -bug $(BUG)

# make mutants: every planted bug must be found by the oracle that it is for.
mutants:
	$(GO) test -tags mutants -count=1 -timeout 30m ./internal/sim -run 'Planted|Proof'

# make soak [SEEDS=200]: shuffles, loops and counters while executors are lost.
soak:
	VOLLEY_SOAK=$(SEEDS) $(GO) test -count=1 -timeout 60m -run 'Lost|Operation' ./rdd .
	VOLLEY_SOAK=$(SEEDS) $(GO) test -count=1 -timeout 60m -run 'ARunThatHasConverged|TheReferenceIsSure' ./mllib

# Each reader for half a minute.
fuzz:
	@for f in FuzzLIBSVM FuzzCSV FuzzPointsOfCSV FuzzArrow FuzzParquet FuzzMappedSplit FuzzBlocks; do \
		$(GO) test ./storage -run '^$$' -fuzz "^$$f$$" -fuzztime 30s || exit 1; done

generate:
	$(GO) generate ./...

clean:
	rm -rf bin

bench:
	$(GO) run ./integration/bench

# make bench-jobs DATA=../shared/data: every job on real data, whole and cut, in virtual time (docs/reference-values.md).
DATA ?= ../shared/data
bench-jobs:
	$(GO) run ./integration/bench/jobs -data $(DATA)

ONLY ?=
# make bench-defaults DATA=../shared/data [ONLY=text]: every job with its defaults alone, beside other libraries' (peers.json).
bench-defaults: build
	@if [ -d $(DATA) ]; then $(GO) run ./integration/bench/defaults -data $(DATA) -volley $(CURDIR)/bin/volley -only "$(ONLY)"; \
	else echo "bench-defaults: there is no $(DATA), skipped"; fi

# make bench-peers PEERS=../shared/peers [ONLY=cluster|ml,JOB,DATA,SYSTEM|dataflow,JOB,SYSTEM]: ours beside other systems.
PEERS ?= ../shared/peers
bench-peers: build
	$(GO) run ./integration/bench/peers -peers $(PEERS) -only "$(ONLY)"
