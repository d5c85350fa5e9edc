# Set-up, checks and the demo. Every target works from a fresh clone.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-all test-min lint docs trial clean
.DELETE_ON_ERROR:

demo: .venv/plain
	$(BIN)/python -m examples.demo

# Compiled tests are kept, even where the environment says that nothing is: to compile them takes ten seconds of a run.
test test-all test-min: export PYTHONDONTWRITEBYTECODE =

# The fast tier: every test that is not marked as slow.
test: .venv/plain
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-all: .venv/plain
	$(BIN)/python -m pytest -n 2 --dist worksteal -m ""

# The fast tier with the oldest versions that pyproject.toml allows.
test-min: .venv-lowest/plain
	.venv-lowest/bin/python -m pytest -n 2 --dist worksteal

lint: .venv/plain
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: .venv/docs
	$(BIN)/sphinx-build -j auto -W --keep-going -b html docs docs/_build/html

trial: .venv/plain
	$(BIN)/python -m benchmarks.trial --quick

clean:
	rm -rf .venv .venv-lowest build docs/_build docs/auto_examples docs/generated

# torch first, and pinned: an open requirement fetches gigabytes of CUDA packages.
.venv/plain: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[plot,compare,dev]'
	touch $@

.venv-lowest/plain: pyproject.toml .ci/lowest_versions.py
	test -x .venv-lowest/bin/python || $(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python .ci/lowest_versions.py > .venv-lowest/constraints.txt
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check -c .venv-lowest/constraints.txt \
		-e '.[test,baselines]'
	touch $@

.venv/docs: .venv/plain
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	touch $@
