# `make example` installs the package and tunes a model; `make check` runs everything that CI runs; `make quick` runs the
# tests that need no compiled Stan program; `make docs` builds the documentation site; `make wheel` builds a wheel with
# compiled programs.

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

# Without bytecode, each process would compile its libraries for seven seconds. Keep it apart from the sources where it
# is not wanted beside them.
ifdef PYTHONDONTWRITEBYTECODE
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX = $(CURDIR)/build/bytecode
endif

# With SLAYR_QUICK=1 the notebooks make few evaluations and draws.
SITE = build/docs/$(if $(SLAYR_QUICK),quick,site)

.PHONY: example check programs lint collected types tests docs quick wheel clean

example: $(VENV)/.example
	$(BIN)/slayr optimize examples/nusvr_diabetes.toml

# All beside each other: a process that waits for a compiler, a sleeping test or a single-threaded mypy would leave cores
# idle. The Stan programs compile while everything else is installed. The tests take longest and go first.
check:
	SLAYR_QUICK=1 $(MAKE) --jobs=5 programs types tests docs

programs: $(VENV)/.toolchain
	$(BIN)/python -m slayr_py.toolchain

lint: $(VENV)/.developer
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python .ci/stan_format.py

# Processes that start together in a new environment would all compile the bytecode of the same libraries and tests.
collected: $(VENV)/.developer lint
	@mkdir -p build
	@$(BIN)/python -m pytest --collect-only --numprocesses=0 -qqq >build/collected.txt || { cat build/collected.txt; exit 1; }

types: $(VENV)/.developer collected
	nice -n 5 $(BIN)/mypy

tests: $(VENV)/.developer collected
	$(BIN)/python -m pytest

# A fresh environment, because Sphinx repeats no warning of a page that has not changed. Notebooks are executed again only
# if they or the package have changed.
docs: $(VENV)/.developer collected
	nice -n 5 $(BIN)/python -m sphinx --builder html --conf-dir docs --doctree-dir build/docs/doctrees --fresh-env --jobs auto \
	    --fail-on-warning --keep-going --quiet . $(SITE)
	@echo "The documentation is in $(CURDIR)/$(SITE)/index.html"

quick: $(VENV)/.developer
	$(BIN)/ruff check .
	$(BIN)/python -m pytest -m "not stan and not slow and not browser"

# For other machines of this operating system: `make wheel MACHINE=aarch64`.
MACHINE ?= $(shell uname -m)
wheel: $(VENV)/.toolchain
	@$(call install,"$$($(call requirement,compile))" hatchling)
	PYTHONPATH=. $(BIN)/python wheel/programs.py --machine $(MACHINE) --output build/prebuilt
	SLAYR_PREBUILT=build/prebuilt $(BIN)/python -m hatchling build --target wheel

$(VENV)/bin/python:
	@$(PYTHON) -m venv $(VENV) || { echo "Cannot create a virtual environment; on Debian: apt-get install python3-venv"; exit 1; }

# uv installs the same packages in a tenth of pip's processor time; pip serves where there is no uv. Neither compiles
# bytecode, because Python compiles what it imports.
define install
$(BIN)/python -m pip install --quiet --no-compile uv && $(BIN)/uv pip install --quiet --python $(BIN)/python $(1) \
    || $(BIN)/python -m pip install --quiet --no-compile $(1)
endef
ifdef PIP_INDEX_URL
export UV_DEFAULT_INDEX ?= $(PIP_INDEX_URL)
endif

$(VENV)/.user: pyproject.toml | $(VENV)/bin/python
	$(call install,--editable '.[stan]')
	@touch $@

# The requirement of an extra, without those that it shares with another extra.
requirement = $(BIN)/python -c 'import tomllib; print(tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["$(1)"][-1])'

# What the compilation of a program needs.
$(VENV)/.toolchain: pyproject.toml | $(VENV)/bin/python
	@$(call install,--no-deps filelock platformdirs "$$($(call requirement,stan))")
	@touch $@

# The program of the example compiles while the other requirements are installed, and imported for the first time.
$(VENV)/.example: $(VENV)/.toolchain
	$(BIN)/python -m slayr_py.toolchain fm_gp & $(MAKE) $(VENV)/.user && nice $(BIN)/slayr optimize --help >/dev/null; \
	    status=$$?; wait; exit $$status
	@touch $@

$(VENV)/.developer: pyproject.toml $(VENV)/.toolchain
	$(call install,--editable '.[dev]')
	@touch $@ $(VENV)/.user

clean:
	rm -rf $(VENV) build docs/api .mypy_cache .pytest_cache .ruff_cache
