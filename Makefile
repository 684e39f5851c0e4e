# Makes its own environment in .venv; needs only Python 3.11 or newer with venv, and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo install test lint types imports services unit bench clean

demo: install
	$(BIN)/fabrictwin demo

install: $(STAMP)

$(STAMP): pyproject.toml
	@scripts/make-venv $(PYTHON) $(VENV)
	@touch $@

test: install services lint types imports unit

services:
	@scripts/install-services

lint:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types:
	$(BIN)/mypy

imports:
	$(BIN)/lint-imports

# Tests of real services mostly wait for them: three files at a time. All others run one a core.
unit:
	$(BIN)/pytest -q -n auto -m "not service"
	$(BIN)/pytest -q -n 3 --dist loadfile -m service

bench: install
	$(BIN)/python -m tests.benchmarks

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
