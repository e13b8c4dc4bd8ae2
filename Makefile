# Each target stands alone on a machine that has make and a Python of at least
# 3.11 with pip: it makes .venv first, and again only when the pins or
# pyproject.toml have changed.
#
#   make test PYTHON=python3.12            another Python
#   make test ARGS="tests/core -k fence"   only some tests, any pytest options
#   make demo STORE=postgres               on PostgreSQL, or on a server: STORE=postgresql://...

SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help demo test lint format coverage requirements clean

PYTHON ?=
CANDIDATES := $(or $(PYTHON),python3 python3.13 python3.12 python3.11)
BIN := .venv/bin
STAMP := .venv/.installed
WORKERS ?= 2
ARGS ?=
STORE ?=

help: ## Show these lines.
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(STAMP) ## Run the demonstration: real jobs, a killed worker, nothing lost.
	@$(BIN)/tidemill demo $(if $(STORE),--store '$(STORE)') $(ARGS)

test: $(STAMP) ## Run the tests, in parallel.
	$(BIN)/pytest -n $(WORKERS) $(if $(CI),-ra --durations=10) $(ARGS)

lint: $(STAMP) ## Run every check that does not run the code.
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/lint-imports --no-logo
	$(BIN)/mypy
	$(BIN)/pyright
	@$(BIN)/towncrier build --draft --version next >/dev/null && echo 'changelog fragments: ok'

format: $(STAMP) ## Format the code and apply ruff's safe repairs.
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

coverage: $(STAMP) ## Draw the map of what the tests reach, in htmlcov/.
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest $(ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage html --quiet
	$(BIN)/coverage report --skip-covered

COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --no-annotate --custom-compile-command 'make requirements'

requirements: $(STAMP) ## Pin again what pyproject.toml and requirements/*.in ask for (ARGS=--upgrade for newer).
	$(COMPILE) $(ARGS) -o requirements/bootstrap.txt requirements/bootstrap.in
	$(COMPILE) $(ARGS) --all-extras -o requirements/dev.txt pyproject.toml requirements/dev.in

clean: ## Remove everything that the other targets made.
	rm -rf .venv .tools build dist htmlcov .coverage .coverage.*
	rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests -type d -name __pycache__ -exec rm -rf {} +

# The first Python that runs and is new enough. Trying it is what tells a real
# one from a pyenv shim for a version that is not active; from here on only the
# program behind the shim is used.
FIND_PYTHON = for name in $(CANDIDATES); do \
	  python=$$("$$name" -c 'import sys; sys.version_info >= (3, 11) or sys.exit(1); print(sys.executable)' \
	    2>/dev/null) && break; python=; \
	done; \
	if [ -z "$$python" ]; then \
	  for name in $(CANDIDATES); do \
	    echo "  $$name: $$("$$name" --version 2>&1 | head -n 1)"; \
	  done >&2; \
	  echo "Tidemill needs Python 3.11 or newer, and none of these is." \
	    "Name another one: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11" >&2; \
	  exit 1; \
	fi

# Debian's plain python3 has venv but not ensurepip; virtualenv needs neither.
$(STAMP): requirements/dev.txt requirements/bootstrap.txt pyproject.toml
	@if ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
	  $(FIND_PYTHON); \
	  rm -rf .venv; \
	  echo "Making .venv with $$($$python --version)"; \
	  if ! "$$python" -m venv .venv >/dev/null 2>&1; then \
	    rm -rf .venv .tools && \
	    "$$python" -m pip install --quiet --require-hashes --target .tools -r requirements/bootstrap.txt && \
	    PYTHONPATH=.tools "$$python" -m virtualenv --quiet .venv || exit 1; \
	  fi; \
	fi
	@echo "Installing requirements/dev.txt and tidemill into .venv"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-index --no-deps --no-build-isolation \
	  --editable .
	@touch $@
