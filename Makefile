# The only entry. Everything else is called from here, on a laptop as in continuous integration.

SHELL := /bin/bash
# Where the environment really is: through a closed checkout other uids cannot reach it (scripts/setup.sh).
BIN = $(realpath .venv)/bin
PY = $(BIN)/python
ARGS ?=

# Only there when the interpreter is a copy that needs it (scripts/setup.sh).
-include .venv/onrecord.mk

.PHONY: help setup environment demo test check lint format bench fuzz docs clean

help:
	@echo "make setup   the environment in .venv, and real tool servers for the tests"
	@echo "make demo    the whole way of a tool call on this machine (ARGS=--json, ARGS='--keep DIR')"
	@echo "make test    every check and test (ARGS='-k words' for some tests)"
	@echo "make lint    ruff, mypy and the doors between the rooms"
	@echo "make check   the same"
	@echo "make bench   every number that the README claims"
	@echo "make fuzz    hostile files for everything that reads one, led by coverage (ARGS='check --seconds 600')"
	@echo "make docs    generated pages, compared with the code (WRITE=1 writes them)"
	@echo "make clean   away with everything that was made"

setup:
	@bash scripts/setup.sh

environment:
	@bash scripts/setup.sh --without-test-servers

demo: environment
	@$(BIN)/onrecord demo --yes $(ARGS)

test: setup lint docs
	@scripts/test.sh $(ARGS)

lint: environment
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy --strict src
	$(BIN)/lint-imports

format: environment
	$(PY) -m ruff format .

check: test

bench: environment
	$(PY) benchmarks/peers.py
	$(PY) benchmarks/digest.py $(ARGS)
	$(PY) benchmarks/vcons.py $(ARGS)
	$(PY) benchmarks/imports.py $(ARGS)
	$(PY) benchmarks/pairs.py $(ARGS)
	$(PY) benchmarks/latency.py $(ARGS)
	$(PY) benchmarks/journal.py $(ARGS)
	$(PY) benchmarks/growth.py $(ARGS)
	$(PY) benchmarks/kills.py $(ARGS)

fuzz: environment
	$(PY) fuzz/run.py $(ARGS)

docs: environment
	$(PY) docs/build.py $(if $(WRITE),--write)

clean:
	@bash scripts/clean.sh
