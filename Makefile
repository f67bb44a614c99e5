# Needs node >= 20 with npm. Everything else is installed by the first target that needs it.
NPM_PATH := $(PATH)
export PATH := $(CURDIR)/node_modules/.bin:$(PATH)
SHELL := /bin/bash
.SHELLFLAGS := -e -o pipefail -c
.DEFAULT_GOAL := help

INSTALLED := node_modules/.installed
FAST := src/ads/ src/api/ src/cache/ src/cli/ src/envoy/ src/judge/ src/model/ src/reconcilers/ src/settle/ src/status/ src/yaml/

.PHONY: help run cluster test test-node test-long test-fast properties check golden gen newest bench slowest picture work soak peers image
.PHONY: check-types check-lint check-format check-imports check-unused check-generated check-chart check-node

help: ## show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

run: $(INSTALLED) ## the bookshop on this machine, without a cluster; ONCE=1 looks and ends, PORTS=29000 moves it
	@node test/peers/build.ts envoy
	@exec node tools/run/run.ts $(if $(ONCE),--once) $(if $(PORTS),--ports $(PORTS))

cluster: $(INSTALLED) ## a real Kubernetes of one node with Fairlead and the bookshop (root on Linux); DOWN=1 removes it
	@$(if $(DOWN),,node test/peers/build.ts)
	@exec node tools/cluster/cluster.ts $(if $(DOWN),--down)

# Runs the tests of these projects of vitest.config.ts; names what was skipped, and counts.
run_tests = mkdir -p .cache && rm -f .cache/$@.json; \
	status=0; \
	vitest run $(1:%=--project=%) --reporter=default --reporter=json --outputFile.json=.cache/$@.json || status=1; \
	node tools/test-summary.ts .cache/$@.json || status=1; \
	exit $$status

test: $(INSTALLED) peers ## all tests but those of the next two targets; what cannot run here is named as skipped
	@$(call run_tests,waiting computing)

test-node: $(INSTALLED) peers ## tests on a real Kubernetes of one node (root on Linux)
	@$(call run_tests,on-a-node)

test-long: $(INSTALLED) peers ## one short turn of what make soak and make bench run, and other long tests
	@$(call run_tests,long)

test-fast: $(INSTALLED) ## the quick part of the tests: translation and protocol, without the golden answers
	@PROPERTY_SHARE=0.03 vitest run --project=computing --no-isolate $(FAST)

properties: $(INSTALLED) ## the property tests over other histories than make test, and four times as many; FAIRLEAD_SEED, PROPERTY_SHARE
	@export FAIRLEAD_SEED=$${FAIRLEAD_SEED:-$$RANDOM} PROPERTY_SHARE=$${PROPERTY_SHARE:-1}; \
	echo "FAIRLEAD_SEED=$$FAIRLEAD_SEED PROPERTY_SHARE=$$PROPERTY_SHARE"; \
	vitest run --testTimeout=3600000 $$(grep -lE 'fc\.(assert|sample)\(|\bruns\(' -r src test --include='*.test.ts')

# The fast part: what can be said without running anything.
check: check-node check-types check-lint check-format check-imports check-unused check-generated check-chart ## the Node of the packages, types, lint, format, import rules, unused code, generated files, chart

check-node: $(INSTALLED)
	@$(is_released_node)

check-types: $(INSTALLED)
	@mkdir -p .cache
	tsc -p . --incremental --tsBuildInfoFile .cache/tsbuildinfo

check-lint: $(INSTALLED)
	eslint .

check-format: $(INSTALLED)
	prettier --check --log-level warn .

# Without the count a cruiser that finds no TypeScript would find no violation, either.
check-imports: $(INSTALLED)
	@mkdir -p .cache
	depcruise --config .dependency-cruiser.cjs src | tee .cache/imports.txt
	@grep -qE '\([1-9][0-9]{2,} modules' .cache/imports.txt || { echo 'depcruise saw too few modules'; exit 1; }

check-unused: $(INSTALLED)
	knip

# That the descriptors are those of Envoy's module is a test: it needs Go.
check-generated: $(INSTALLED)
	node tools/api/generate.ts --check
	node tools/protos/generate.ts --types --check

check-chart: $(INSTALLED)
	node tools/lint-chart.ts

golden: $(INSTALLED) ## write the golden files again; review the diff
	node test/golden/write.ts
	node test/bootstrap/write.ts
	node test/injection/write.ts

gen: $(INSTALLED) ## write generated files again: crds/ and types from tools/api/schemas, Envoy's messages (needs go)
	node tools/api/generate.ts
	node tools/protos/generate.ts

newest: $(INSTALLED) ## what a newer release of Istio's API adds to the one that is pinned (needs go)
	@node tools/newest.ts

# A file that says how it is run is a benchmark; the others are parts of one.
bench: $(INSTALLED) ## the benchmarks, figures as in docs/performance.md
	@for file in bench/*.ts; do if grep -q "$$file" "$$file"; then echo "--- $$file"; node --expose-gc "$$file"; fi; done

slowest: $(INSTALLED) ## write the slowest files of the last make test into CONTRIBUTING.md
	@node tools/slowest-tests.ts && prettier --write --log-level warn CONTRIBUTING.md

picture: $(INSTALLED) ## record the screen of make run again, as the picture of the README
	@node test/peers/build.ts envoy
	@node tools/picture.ts

work: $(INSTALLED) ## record what changes cost in work (bench/work.json), if more is meant; a test compares
	node bench/work.ts --write

soak: $(INSTALLED) peers test-long ## half an hour of every attack at once (SECONDS_OF_SOAK, SEED), 1,000 changes under load (CHANGES, FAIRLEAD_SEED), half an hour of faults (FAULT_ROUNDS)
	node test/soak/main.ts
	node test/hitless/main.ts
	node test/faults/main.ts

peers: $(INSTALLED) ## fetch and build what tests run against: Envoy, Kubernetes with what a node runs, helm, Istio's CRDs
	@node test/peers/build.ts

image: ## the container images
	version=$$(sed -n 's/^  "version": "\(.*\)",/\1/p' package.json); \
	docker build --tag fairlead:$$version . && \
	docker build --tag fairlead-proxy:$$version --file Dockerfile.proxy .

# The packages with Node come from one person: what they hold must be what Node was released with. Other systems have none.
is_released_node = ! ls node_modules/node-linux-*/bin/node >/dev/null 2>&1 || \
	sha256sum --check --strict --quiet --ignore-missing tools/node.sha256 || \
	{ echo 'Node of node_modules is not the recorded release. After another version: tools/node-release.sh --write'; exit 1; }

# By content, not only by time: a fresh checkout changes times. npm does not run on the node that it replaces.
$(INSTALLED): package-lock.json
	@cmp -s $< $@ || { echo 'npm ci ...'; PATH='$(NPM_PATH)' npm ci --loglevel=error; }
	@$(is_released_node)
	@node -p 'process.version' | grep -qE '^v(22\.(19|[2-9][0-9])|2[3-9]|[3-9][0-9])\.' || { echo 'Needs node >= 22.19: npm has no build of it for this system'; exit 1; }
	@cp $< $@
