# Set-up, checks and the demo. Every target works from a fresh clone.
PYTHON ?= python3
BIN := .venv/bin
# Pinned, and installed before all else: an open requirement fetches gigabytes of CUDA packages.
TORCH := torch==2.13.0
INTO := install --quiet --disable-pip-version-check
INSTALL := -m pip $(INTO)

.PHONY: demo test test-all test-min lint docs docs-check trial package stale clean
.DELETE_ON_ERROR:

demo: .venv/demo
	$(BIN)/python -m examples.demo

# Compiled tests are kept, even where the environment says that nothing is: to compile them takes ten seconds of a run.
test test-all test-min package: export PYTHONDONTWRITEBYTECODE =

# The fast tier: every test that is not marked as slow.
test: .venv/plain
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-all: .venv/plain
	$(BIN)/python -m pytest -n 2 --dist worksteal -m ""

# The fast tier with the oldest versions that pyproject.toml allows, without what libraries other than torch, which is
# pinned, hardly touch.
OWN := solvers constraints objectives pairwise models theory torch distributed estimators/test_promise_matrix.py \
	$(addprefix test_,$(addsuffix .py,covering language layering problem surrogates))

test-min: .venv-lowest/plain
	.venv-lowest/bin/python -m pytest -n 2 --dist worksteal $(addprefix --ignore tests/,$(OWN))

lint: .venv/plain
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: .venv/docs
	$(BIN)/sphinx-build -j auto -W --keep-going -b html docs docs/_build/html

# Pages in a headless browser, at three widths; needs Chromium or Chrome, and npm for two packages of its own.
BROWSER := $(firstword $(foreach name,chromium chromium-browser google-chrome google-chrome-stable,$(shell command -v $(name))))

docs-check: docs
ifeq ($(BROWSER),)
	@echo "docs-check is skipped: no Chromium or Chrome is installed"
else ifeq ($(shell command -v npm),)
	@echo "docs-check is skipped: npm is not installed"
else
	cd docs/check && npm install --no-package-lock --no-audit --no-fund --ignore-scripts
	node docs/check/check.mjs $(BROWSER) docs/_build/html
endif

trial: .venv/plain
	$(BIN)/python -m benchmarks.trial --quick

# Figures of the documentation that are older than the code which they measure.
stale: .venv/demo
	$(BIN)/python -m benchmarks.stale

# What is published, in dist/: complete, and the wheel runs by itself, without any extra.
package: .venv/release
	rm -rf build dist .venv-package
	$(BIN)/python -m build --no-isolation
	$(BIN)/twine check --strict dist/*
	$(BIN)/python .ci/archives.py dist
	$(PYTHON) -m venv --without-pip .venv-package
	$(BIN)/python -m pip --python .venv-package $(INTO) --no-compile $(TORCH)
	$(BIN)/python -m pip --python .venv-package $(INTO) --no-compile dist/*.whl
	.venv-package/bin/python .ci/readme_example.py
	.venv-package/bin/fairconstrained metrics docs/guide/scores.csv --label high_income --score score --groups sex

clean:
	rm -rf .venv .venv-lowest .venv-package build dist docs/_build docs/auto_examples docs/generated

# Environments by their extras: the demo's is the smallest, and all of them share a folder.
.venv/demo: EXTRAS := demo
.venv/plain: EXTRAS := plot,compare,dev
.venv/docs: EXTRAS := plot,compare,dev,docs
.venv/release: EXTRAS := release
.venv/demo .venv/plain .venv/docs .venv/release: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python $(INSTALL) $(TORCH)
	$(BIN)/python $(INSTALL) -e '.[$(EXTRAS)]'
	touch $@

.venv-lowest/torch:
	test -x .venv-lowest/bin/python || $(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python $(INSTALL) $(TORCH)
	touch $@

.venv-lowest/plain: .venv-lowest/torch pyproject.toml .ci/lowest_versions.py
	.venv-lowest/bin/python .ci/lowest_versions.py > .venv-lowest/constraints.txt
	.venv-lowest/bin/python $(INSTALL) -c .venv-lowest/constraints.txt -e '.[test]'
	touch $@
