# The verbs of Windrow; `make help` lists them. Everything lives in .venv; nothing is installed beside it.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
# Any Python from 3.11 on; only used to create .venv.
PYTHON ?= $(firstword $(foreach name,python3.11 python3 python3.12 python3.13,$(if $(shell $(name) -c 'import sys; print(sys.version_info >= (3, 11) or "")' 2>/dev/null | grep True),$(name))))
PIP := $(PY) -m pip --disable-pip-version-check --no-input
# Without bytecode: Python makes it of what is imported, which is a part of what pip would compile.
INSTALL := $(PIP) install --quiet --no-compile --require-hashes
CONSOLE := $(shell find console -name node_modules -prune -o -name dist -prune -o -type f -print 2>/dev/null)
# Tests at once, for two processors: tests wait for much of their time, for deadlines and for processes.
WORKERS ?= 5
BENCHES := $(patsubst bench/%.py,%,$(filter-out bench/_%,$(wildcard bench/*.py)))

# What `make up` passes on: DATA_DIR LISTEN PUBLIC SIMULATE ONCE (see `windrow up --help`).
UP := $(if $(DATA_DIR),--data-dir '$(DATA_DIR)') $(if $(LISTEN),--listen '$(LISTEN)') $(if $(PUBLIC),--public '$(PUBLIC)') \
      $(if $(SIMULATE),--simulate '$(SIMULATE)') $(if $(filter-out 0,$(ONCE)),--once)
export FUZZ SEED BENCH_SCALE PROVISION REQUIRE_SERVICES
# Daemons start from bytecode, whatever the caller's shell says of it: each start would compile all of it again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help up test long check types rules collected provided bench sim chaos torture hostile cases walk ux shots architecture mission packages proto openapi conditions setup lock clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' Makefile
	@echo "  Variables: up: DATA_DIR LISTEN PUBLIC SIMULATE ONCE; bench: B BENCH_SCALE; sim: SEED SEEDS BUGS JOBS; test: PROVISION REQUIRE_SERVICES WORKERS"

up: $(VENV)/installed ## run a whole market on this machine: Master, two relays, this host's Agent, the console
	@exec $(BIN)/windrow up $(UP)

test: compiler $(VENV)/tested ## check, then every test but the long ones; PROVISION=1 installs as root what only Debian has
	@$(MAKE) --jobs=3 --output-sync=target provided types rules collected
	@$(PY) -m tests.provision -- env SHORT=1 $(PY) -m tests.again -n $(WORKERS) $(TESTS)

long: compiler $(VENV)/tested ## the tests that `make test` leaves out: each a market of its own or a long history
	@$(PY) -m tests.provision -- $(PY) -m tests.again -n $(WORKERS) -m long $(TESTS)

check: $(VENV)/tested ## lint, format, types, import rules, the console's own
	@$(MAKE) --jobs=2 --output-sync=target types rules

# Neither waits for the other: the types of Python take as long as all the rest.
types:
	@$(BIN)/mypy

rules:
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports --config pyproject.toml
	@$(PY) master/hatch_build.py check
	@$(PY) master/hatch_build.py test

# What fetches waits for a line, not for a processor.
provided:
	@$(PY) -m tests.provision

# Rewrites the assertions of all tests once; else each worker does it. What fails here fails there with its words.
collected:
	@-$(PY) -m pytest --collect-only -qq -n0 $(TESTS) > /dev/null 2>&1

bench: $(VENV)/tested ## benchmarks beside their peers; B=name for one, BENCH_SCALE=0.1 for a quick look
	@for name in $(or $(B),$(BENCHES)); do \
	  [ -f "bench/$$name.py" ] || { echo "No benchmark $$name; there are: $(BENCHES)"; exit 2; }; \
	  $(PY) -m "bench.$$name"; \
	done

sim: $(VENV)/tested ## the whole market, and its queue, in virtual time; SEED=n one hour of it, SEEDS=1:301 ten minutes of each, BUGS=20 planted ones
	@$(if $(SEED),$(PY) -W ignore::RuntimeWarning -m tests.simulation $(SEED),\
	  $(if $(SEEDS)$(BUGS),$(PY) -W ignore::RuntimeWarning -m tests.simulation.campaign \
	    $(if $(SEEDS),--seeds $(SEEDS)) $(if $(BUGS),--bugs $(BUGS)) $(if $(JOBS),--jobs $(JOBS)),SIM=1 $(PY) -m pytest -q tests/simulation tests/unit/queue/test_judges.py))

chaos: $(VENV)/tested ## kill real processes for a quarter of an hour and judge what is left; SEED=n
	@CHAOS=1 $(PY) -m tests.provision -- $(PY) -m pytest -q -m chaos tests

torture: $(VENV)/tested ## power cuts, failing disks, fuzz, the HTTP API under garbage, at full length; FUZZ=n inputs per parser, SEED=n
	@TORTURE=1 $(PY) -m pytest -q tests/torture

hostile: compiler $(VENV)/tested ## what strangers, lying hosts and greedy neighbours try, at full length; a table of all cases
	@HOSTILE=1 $(PY) -m tests.provision -- $(PY) -m pytest -q tests/hostile

cases: $(VENV)/tested ## what strangers reported and met, one test per row of tests/cases; a table of kinds, rows, passed
	@CASES=1 $(PY) -m tests.provision -- $(PY) -m pytest -q -p tests.cases.report -m case tests

walk: $(VENV)/tested ## every link of every page of the console in four roles, on a busy market; WALK=n addresses of each shape
	@WALK=$(or $(WALK),4) $(PY) -m pytest -q -s tests/browser/test_walk.py

ux: $(VENV)/tested ## do every job of a first-time user in a real browser, on a market with faults and two weeks of past; clicks, seconds, Lighthouse
	@UX=1 $(PY) -m tests.provision -- $(PY) -m pytest -q -s tests/browser/test_ux.py tests/browser/test_lighthouse.py

shots: $(VENV)/tested ## take the pictures of the docs again, on a busy market
	@$(PY) -m tests.browser.shots

architecture: $(VENV)/tested ## how the code base is built, in figures: lines, floors, circles, lone files
	@$(PY) -m tests.architecture.figures

mission: $(VENV)/tested ## one test per sentence of the mission that works
	@$(PY) -m pytest -q tests/mission

packages: $(VENV)/installed ## the agent with its own Python as one file, archive and .deb, into build/packages
	@$(PY) -m windrow_master.onboarding.packages build/packages

proto: $(VENV)/tested ## make the stubs in proto/ again from the .proto files
	@$(PY) -m tests.architecture.stubs proto

openapi: $(VENV)/tested ## write docs/openapi.json and docs/permissions.md again from the routes, and the console's types
	@$(PY) -m windrow_master.api.openapi docs/openapi.json
	@$(PY) -m windrow_master.api.permissions docs/permissions.md
	@$(PY) -m tests.architecture.api_types
	@$(PY) -m tests.architecture.request_fields

conditions: $(VENV)/tested ## write the runbook, the Prometheus rules, and the pages of errors and commands again from their tables
	@$(PY) -m tests.architecture.condition_pages
	@$(PY) -m tests.architecture.error_pages
	@$(PY) -m tests.architecture.cli_pages

setup: ## install again from the locks, with the test tools, and build the console
	@rm -f $(VENV)/installed $(VENV)/tested $(VENV)/console
	@$(MAKE) $(VENV)/tested

lock: $(VENV)/tested ## resolve the locks again, from the ordinary index only
	@$(PIP) install --quiet 'uv>=0.13'
	@$(PY) -m tests.architecture.locks

clean: ## remove what was built and cached; state in .windrow and the environment in .venv stay
	@rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache master/windrow_master/static \
	  console/dist console/node_modules tests/browser/node_modules tests/browser/.cache bench/out
	@find . -path ./$(VENV) -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: compiler
compiler:
	@command -v gcc >/dev/null || { echo "gcc is missing: the tests build a stand-in for NVIDIA's library with it. Install it (on Debian: apt-get install gcc), then again."; exit 1; }

# --- the environment, each step stamped by a file ------------------------------------------------

$(PY):
	@[ -n "$(PYTHON)" ] || { echo "Windrow needs Python 3.11 or newer: install it (on Debian: apt-get install python3 python3-venv), then again."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "Python's venv module is missing: install it (on Debian: apt-get install python3-venv), then again."; exit 1; }
	@echo "Creating $(VENV) with $$($(PYTHON) --version)"
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV)

$(VENV)/tools: requirements-build.lock | $(PY)
	@echo "Installing what Windrow needs and building its console (once)"
	@$(INSTALL) -r requirements-build.lock
	@touch $@

$(VENV)/locked: requirements.lock $(VENV)/tools
	@$(INSTALL) -r requirements.lock
	@touch $@

$(VENV)/console: $(VENV)/tools master/hatch_build.py $(CONSOLE)
	@$(PY) master/hatch_build.py build || echo "Everything else works without the console, and \`make setup\` tries again."
	@touch $@

# Editable: the environment follows the tree, so that only a changed declaration or console installs again.
# The console is built while pip fetches: neither waits for the other.
$(VENV)/installed: requirements.lock requirements-build.lock pyproject.toml $(wildcard */pyproject.toml) master/hatch_build.py $(CONSOLE)
	@$(MAKE) --jobs=2 $(VENV)/locked $(VENV)/console
	@WINDROW_SKIP_CONSOLE=1 $(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/tested: requirements-test.lock $(VENV)/installed
	@echo "Installing what the tests need (once)"
	@$(INSTALL) -r requirements-test.lock
	@touch $@
