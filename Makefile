# `make example` installs the package and tunes a real model; `make check` runs everything that CI runs.

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: example check clean

example: $(VENV)/.user
	$(BIN)/slayr optimize examples/nusvr_diabetes.toml

check: $(VENV)/.developer
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python .ci/stan_format.py
	$(BIN)/mypy
	$(BIN)/python -m pytest

$(VENV)/bin/python:
	@$(PYTHON) -m venv $(VENV) || { echo "cannot create a virtual environment; on Debian: apt-get install python3-venv"; exit 1; }

$(VENV)/.user: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.developer: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@ $(VENV)/.user

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache
