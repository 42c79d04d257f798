# Everything here needs Go and make only; the race detector also a C compiler.
GO ?= go
export CGO_ENABLED ?= 0

.PHONY: build run test pictures site image objects netns chaos builds race lint sim mutants mutate house soak bench bench-push bench-memory bench-jobs bench-defaults bench-peers digests fuzz generate clean

build:
	$(GO) build -trimpath -ldflags=-s -o bin/volley ./cmd/volley

# Trains on made-up data, BSP beside A-BSP with one executor at half speed.
run: build
	bin/volley generate logistic --rows 60000 --features 40 --eps 0.2 --out bin/train.libsvm
	$(GO) run ./examples/09-compare --input bin/train.libsvm

# What has tests: programs that have none are compiled where they are needed.
TESTED = $(GO) list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...

test:
	$(GO) vet ./...
	$(GO) test -vet=off -timeout 35m $$($(TESTED))
	cd deploy/image && $(GO) vet ./... && $(GO) test -timeout 15m ./...
	cd deploy/kubernetes && $(GO) vet ./... && $(GO) test -timeout 15m ./...
	cd integration/stores && $(GO) vet ./...

# objects: the tests of objects against MinIO, which is built first (some minutes).
MINIO ?= v0.0.0-20260212201848-7aac2a2c5b7c
objects:
	GOBIN=$(CURDIR)/bin $(GO) install github.com/minio/minio@$(MINIO)
	VOLLEY_TEST_MINIO=$(CURDIR)/bin/minio $(GO) test -count=1 -timeout 15m -run 'Objects|Store|Written|Whole|Listed|First|Changed|NoneIs|EveryOrder|OthersHave|Copied' \
		./storage/objects ./rdd ./mllib/internal/model ./integration

# image: the OCI image, in bin/image, built without Docker; PUSH=REGISTRY/NAME:TAG pushes it.
PUSH ?=
image:
	cd deploy/image && $(GO) run . -push "$(PUSH)"

# builds: a build for newer processors trains the same models, to the bit.
builds:
	VOLLEY_BUILDS=1 $(GO) test -count=1 -timeout 15m -run 'ABuildForNewer' ./integration

# race: all but what looks at sources, what has no goroutines, and what starts the engine as processes, in which the detector is
# not. Of algorithms it is what many goroutines do to one thing.
RACED = $(TESTED) | grep -v '/integration\|/mllib\|/cmd/\|/internal/\(lint\|mutate\|house\|copies\|sim\)'
race:
	@if command -v cc >/dev/null || command -v gcc >/dev/null; then \
		CGO_ENABLED=1 $(GO) test -vet=off -race -short -timeout 30m ./integration/soak $$($(RACED)) && \
		CGO_ENABLED=1 $(GO) test -vet=off -race -short -timeout 30m -run 'Worker|AnyCluster|Notes|Executors|Lost|Ranks' ./mllib/...; \
	else echo "race: no C compiler, skipped"; fi

# lint: the house's rules, and staticcheck.
lint:
	$(GO) test -vet=off ./internal/lint
	$(GO) tool staticcheck -checks all,-ST1000,-ST1020,-ST1021,-ST1022,-ST1003,-ST1005,-ST1001 ./...

# make sim SEEDS=2000 FROM=1 [BUG=1..] [WORLD=drivers]: the control plane, a driver's life, a session's stages and an executor's slots. Bugs are planted in a build of their own.
SEEDS ?= 200
FROM ?= 1
BUG ?= 0
WORLD ?=
sim:
	$(GO) run $(if $(filter-out 0,$(BUG)),-tags mutants) ./internal/sim/simulate -seeds $(SEEDS) -from $(FROM) -bug $(BUG) -world "$(WORLD)"

# make mutants: every planted bug must be found by the oracle that it is for.
mutants:
	$(GO) test -tags mutants -count=1 -timeout 30m ./internal/sim -run 'Planted|Proof'

# make mutate [PKG=abss,scheduler] [JOBS=2] [LEAST=85]: every small change of what decides must be noticed by a test, but for
# few: docs/mutants.md says which are not.
PKG ?=
JOBS ?= 2
LEAST ?= 85
mutate:
	$(GO) run ./internal/mutate -pkg "$(PKG)" -jobs $(JOBS) -least $(LEAST)

# make house: docs/house.md anew, the tree in figures.
house:
	$(GO) run ./internal/house

# make soak [SEEDS=200]: random pipelines of all operations against a naive reference, in one process, a twentieth of them on
# processes that are killed and stopped, a fiftieth with more data than memory; then shuffles, loops, counters and solvers.
# VOLLEY_SOAK_SEED=7 go test -tags soak ./integration/soak -v runs one of them, in words. Rows of all types take a compiler minutes
# and 9 GB.
soak:
	VOLLEY_SOAK=$(SEEDS) $(GO) test -tags soak -count=1 -v -timeout 180m ./integration/soak
	VOLLEY_SOAK=$(SEEDS) $(GO) test -tags soak -count=1 -timeout 60m ./integration/rows
	VOLLEY_SOAK=$(SEEDS) $(GO) test -count=1 -timeout 60m ./storage/saved ./storage/input/csv ./mllib/kmeans
	VOLLEY_SOAK=$(SEEDS) $(GO) test -count=1 -timeout 60m -run 'Lost|Operation|StealingComesNear' ./rdd ./internal/host
	VOLLEY_SOAK=$(SEEDS) $(GO) test -count=1 -timeout 60m -run 'ARunThatHasConverged|TheReferenceIsSure|NoRunEndsFurther' ./mllib/linear
	VOLLEY_SOAK=$(SEEDS) $(GO) test -count=1 -timeout 60m -run 'ReferenceValues|LessonsOnTheirData|EverySeedFinds' ./integration

# Each reader for half a minute.
fuzz:
	@for f in input:FuzzLIBSVM input:FuzzPointsOfCSV input:FuzzArrow input:FuzzParquet input/csv:FuzzCSV pack:FuzzMappedSplit shuffle:FuzzBlocks; do \
		$(GO) test ./storage/$${f%:*} -run '^$$' -fuzz "^$${f#*:}$$" -fuzztime 30s || exit 1; done
	$(GO) test ./driver -run '^$$' -fuzz '^FuzzRetelling$$' -fuzztime 30s
	$(GO) test ./tables -run '^$$' -fuzz '^FuzzMessages$$' -fuzztime 30s

generate:
	$(GO) generate ./...

clean:
	rm -rf bin

# make bench [ONLY="cluster trust"]: what the engine claims, each as a ratio within one run.
bench:
	$(GO) run ./integration/bench -only "$(ONLY)"

# make bench-push: what tables push between two executors beside a plain copy over TCP, on this machine and, as root, on a network
# of namespaces.
bench-push:
	$(GO) run ./integration/bench/push

# make bench-memory [LIMIT=200MiB] [SCALE=1] [ONLY=join,sort]: each operation on ten times as much data as memory, and whether it
# keeps to its limit. SCALE=1 is 2 GB.
LIMIT ?= 200MiB
SCALE ?= 1
bench-memory:
	$(GO) run ./integration/bench/memory -limit $(LIMIT) -scale $(SCALE) -only "$(ONLY)"

# make bench-jobs DATA=../shared/data: every job on real data, whole and cut, in virtual time (docs/reference-values.md).
DATA ?= ../shared/data
bench-jobs:
	$(GO) run ./integration/bench/jobs -data $(DATA)

# make digests DATA=../shared/data [CHECK=FILE]: digests of what all jobs and lessons come to, embedded and on processes; with
# CHECK they are held against those that another version has printed.
digests:
	@if [ -d $(DATA) ]; then $(GO) run ./integration/digests -data $(DATA) -check "$(CHECK)"; else echo "digests: there is no $(DATA), skipped"; fi

ONLY ?=
# make bench-defaults DATA=../shared/data [ONLY=text]: every job with its defaults alone, beside other libraries' (peers.json).
bench-defaults: build
	@if [ -d $(DATA) ]; then $(GO) run ./integration/bench/defaults -data $(DATA) -volley $(CURDIR)/bin/volley -only "$(ONLY)"; \
	else echo "bench-defaults: there is no $(DATA), skipped"; fi

# Clusters on networks of namespaces, which needs root: each process on a host of its own, links that are slow, lossy or cut.
netns:
	$(GO) test -count=1 -v ./integration -run Network

# make chaos SEEDS=60 FROM=1: each seed does what it will to three drivers and four executors for a minute, and what clients
# were told meanwhile must be what one machine could have said. Needs root.
chaos:
	$(GO) test -count=1 -v -timeout 0 ./integration -run ChaosOnANetwork -chaos $(SEEDS) -chaos-from $(FROM)

# make bench-peers PEERS=../shared/peers [ONLY=cluster|arrow|ml,JOB,DATA,SYSTEM|dataflow,JOB,SYSTEM|tables,JOB,MEASURE|tables,spark] [DOCUMENTS=6000]: ours
# beside other systems.
PEERS ?= ../shared/peers
DOCUMENTS ?= 6000
bench-peers: build
	$(GO) run ./integration/bench/peers -peers $(PEERS) -only "$(ONLY)" -documents $(DOCUMENTS)

# The documents as a site that needs no server, bin/site/index.html; Hugo is a tool of a module of its own.
site:
	cd docs/site && $(GO) tool hugo --quiet --noBuildLock --cleanDestinationDir --destination ../../bin/site

# Pictures of docs/, of real runs: needs Chromium.
pictures: build
	cd bin && ./volley generate logistic --rows 60000 --features 40 --eps 0.2 --out train.libsvm
	cd bin && ./volley run logistic --data train.libsvm --clock virtual --pace static:1,1,1,0.25 --pace-rate 100000 --sync absp \
		--solver nesterov --max-iterations 60 --event-log run.log
	cd bin && ./volley report run.log --out run.html
	chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1200,1560 --screenshot=docs/pictures/report.png file://$(CURDIR)/bin/run.html
	cd bin && ./volley generate als --rows 60000 --out ratings.csv
	cd bin && ./volley run mf --data ratings.csv --clock virtual --pace static:1,1,1,0.25 --pace-rate 100000 --sync ssp --slack 2 \
		--max-iterations 40 --event-log tables.log && ./volley report tables.log --out tables.html
	chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1200,2200 --screenshot=docs/pictures/tables.png file://$(CURDIR)/bin/tables.html
	VOLLEY_PICTURES=$(CURDIR)/docs/pictures $(GO) test -count=1 -run TestTheLivePageInABrowser ./integration
