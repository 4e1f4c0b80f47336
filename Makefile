# `make example` installs the package and tunes a model; `make check` runs everything that CI runs; `make quick` runs the
# tests that need no compiled Stan program.

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: example check types tests quick clean

example: $(VENV)/.user
	$(BIN)/slayr optimize examples/nusvr_diabetes.toml

# mypy uses one core for half a minute: the tests start beside it.
check: $(VENV)/.developer
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python .ci/stan_format.py
	$(MAKE) --jobs=2 types tests

types: $(VENV)/.developer
	$(BIN)/mypy

tests: $(VENV)/.developer
	$(BIN)/python -m pytest

quick: $(VENV)/.developer
	$(BIN)/ruff check .
	$(BIN)/python -m pytest -m "not stan and not slow and not browser"

$(VENV)/bin/python:
	@$(PYTHON) -m venv $(VENV) || { echo "Cannot create a virtual environment; on Debian: apt-get install python3-venv"; exit 1; }

$(VENV)/.user: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.developer: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@ $(VENV)/.user

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache
