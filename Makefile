# Every target is one line and idempotent; `make` lists them.
.DEFAULT_GOAL := help
PYTEST := .venv/bin/python -m pytest
JOBS ?= 4
PLATFORMS ?= linux/amd64,linux/arm64
DEMO = $(if $(FOR),--for $(FOR)) $(if $(FAULT),--fault $(FAULT)) $(if $(BROKER),--broker $(BROKER)) $(if $(JSON),--json)
# Python may cache compiled modules, also where the environment forbids it: hundreds of processes import the same ones.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: help setup setup-test demo test lint format test-unit test-spark test-dashboard test-integration bench-probes bench-exporter bench-diagnosis bench-pipeline bench-dashboard bench-fuzz bench-chaos docs lock screenshots dist release images ship-test kube-test azure-test

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-18s %s\n", $$1, $$2}'

setup: ## install what is missing; afterwards .venv/bin/ackscope runs
	@scripts/setup.sh

setup-test:
	@scripts/setup.sh test

demo: setup ## a private broker, a workload, everything watched; FOR=120 ends by itself, FAULT=, BROKER=4.3, JSON=1
	@exec .venv/bin/ackscope demo $(DEMO)

test: setup-test ## install what is missing and run every test, four at once; JOBS=1 runs one after the other
	@$(MAKE) --no-print-directory -j2 lint .tools/spark-classes.jsa
	@$(PYTEST) --ignore tests/ship --second-try $(if $(filter-out 1,$(JOBS)),-n $(JOBS) --dist loadfile --no-loadscope-reorder)

# Small Spark jobs need half of the CPU time with it. Tests also run without it, so that a failure is reported and ignored.
.tools/spark-classes.jsa: requirements.lock | setup-test
	-@.venv/bin/python -m tests.spark_java

lint: setup-test ## style, types
	@.venv/bin/ruff check . && .venv/bin/ruff format --check . && .venv/bin/mypy

format: ## let ruff format and fix what it can
	@.venv/bin/ruff format . && .venv/bin/ruff check --fix .

test-unit: setup-test ## pure tests: no broker, no JVM, no browser
	@$(PYTEST) tests/unit

test-spark: setup-test ## the pipeline on a real Spark
	@$(PYTEST) tests/spark

test-dashboard: setup-test ## the page, in AppTest and in Chromium
	@$(PYTEST) tests/dashboard

test-integration: setup-test ## real brokers
	@$(PYTEST) tests/integration tests/e2e

bench-probes: setup ## the probes against the wire, PerfTest, slow disks, stalls, kills; under 10 minutes, as root
	@.venv/bin/python -m bench.probes

bench-exporter: setup ## the exporter against its peers and limits, growth, a hung node, churn; about half an hour on an idle machine, as root, needs Go
	@.venv/bin/python -m bench.exporter

bench-diagnosis: setup ## faults and decoys on real brokers: named or not, how soon, what else is said; an hour or so, as root
	@.venv/bin/python -m bench.diagnosis

bench-pipeline: setup ## made-up history through the pipeline: beside DuckDB, Polars, pandas; incidents, kills, freshness; half an hour or so
	@.venv/bin/python -m bench.pipeline

bench-dashboard: setup-test ## the page at 10,000 queues: first look, reruns, twenty viewers, beside RabbitMQ's own; half an hour or so, needs Chromium
	@.venv/bin/python -m bench.dashboard

bench-fuzz: setup-test ## damaged input of every kind, 200 cases of each; for hours: python -m bench.fuzz.broker --minutes 60
	@.venv/bin/python -m bench.fuzz

bench-chaos: setup-test ## everything around the exporter breaks at random for ten minutes; an hour: python -m bench.chaos.hour; as root
	@.venv/bin/python -m bench.chaos

docs: setup-test ## the documentation as a site, in build/site
	@NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict --quiet && echo build/site/index.html

dist: ## sdist, wheel, software bill of materials and checksums of this version, into dist/
	@scripts/release.py

release: ## the same for a new version, VERSION=0.2.0: writes it, commits and tags it first; pushes nothing
	@scripts/release.py $(or $(VERSION),$(error say which: make release VERSION=0.2.0))

images: dist ## images exporter and full for PLATFORMS (linux/amd64,linux/arm64); needs buildah, and qemu for foreign ones
	@for target in exporter full; do buildah build --format docker --platform $(PLATFORMS) --target $$target \
	  --manifest localhost/ackscope:$$target -f deploy/image/Containerfile dist || exit 1; done

ship-test: ## install the wheel, build and run the image, render the chart; under 15 minutes, as root, needs Go
	@scripts/setup.sh ship
	@$(PYTEST) tests/ship --ignore-glob '*/test_kube_*'

kube-test: ## chart and discovery on a real kube-apiserver with etcd; four minutes, the first build ten more; as root, needs Go
	@scripts/setup.sh kube
	@$(PYTEST) tests/ship/test_kube_*.py

azure-test: ## the tests of object storage on Azurite instead of an S3 server; five minutes; needs npm
	@scripts/setup.sh test
	@scripts/setup.sh azure
	@OBJECT_STORAGE=azure $(PYTEST) tests/integration/storage tests/integration/exporter/test_bucket.py \
		tests/spark/test_object_storage.py tests/spark/test_object_stream.py tests/spark/test_delta_readers.py

lock: ## pin every package anew, with hashes
	@scripts/lock.sh --upgrade

screenshots: setup-test ## pictures of every page during real faults, into docs/images; twenty minutes on an idle machine
	@.venv/bin/python -m tests.e2e.pictures && .venv/bin/python -m tests.e2e.animation
