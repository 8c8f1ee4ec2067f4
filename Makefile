# make quickstart   set up everything, then run the main job
# make test         set up everything, then pass all tests
# make setup        the environment alone (idempotent)

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
OUT    ?= out/quickstart
SHELL  := /bin/bash

# Idle OpenMP threads must sleep, not spin: on shared cores spinning costs 10-30x.
export OMP_WAIT_POLICY := passive
export PYTHONHASHSEED := 0

.PHONY: setup quickstart test lint types clean
.DELETE_ON_ERROR:

setup: $(STAMP)
	@scripts/ensure-bubblewrap.sh
	@scripts/ensure-libfaketime.sh

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "setup: Palestra needs Python 3.11 or newer, got %d.%d; name one with make PYTHON=..." % sys.version_info[:2])'
	@echo "setup: making $(VENV) and installing pinned dependencies (a few minutes the first time)"
	@$(PYTHON) -m venv $(VENV) || { echo "setup: python3 -m venv failed; on Debian: apt-get install python3-venv" >&2; exit 1; }
	@$(BIN)/python -m pip install --disable-pip-version-check --progress-bar off --prefer-binary -c constraints.txt -e '.[train,export,sign,postgres,dev]' 2>$(VENV)/install.log \
	  | sed -Eun 's/^Collecting ([A-Za-z0-9_.-]*[A-Za-z0-9]).*/setup:   \1/p; s/^Processing .*\/([A-Za-z0-9_.]*)-[0-9].*/setup:   \1/p; s/^Installing collected packages.*/setup: installing them/p'; \
	  test $${PIPESTATUS[0]} -eq 0 || { cat $(VENV)/install.log >&2; exit 1; }
	@touch $@
	@echo "setup: done"

quickstart: setup
	@$(BIN)/palestra quickstart --out $(OUT) $(ARGS)

test: setup
	@scripts/ensure-postgresql.sh
	@$(BIN)/python -m pytest $(ARGS)

lint: setup
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

types: setup
	@$(BIN)/mypy

clean:
	rm -rf $(VENV) out .pytest_cache .mypy_cache .ruff_cache
