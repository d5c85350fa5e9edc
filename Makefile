# Set-up, checks and the demo. Every target works from a fresh clone.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint docs clean
.DELETE_ON_ERROR:

demo: .venv/plain
	$(BIN)/python -m examples.demo

test: .venv/plain
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: .venv/plain
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: .venv/docs
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

clean:
	rm -rf .venv build docs/_build docs/auto_examples docs/generated

# torch first, and pinned: an open requirement fetches gigabytes of CUDA packages.
.venv/plain: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[plot,compare,dev]'
	touch $@

.venv/docs: .venv/plain
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	touch $@
