# Two commands: `make book` and `make test`. Both set up the environment first.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
WORKERS ?= 2
# LOCKED=1: every package by its hash, from requirements.lock
LOCKED ?=
REQUIREMENTS = $(if $(LOCKED),--require-hashes -r requirements.lock,-r requirements.txt)
# what each run of the tests leaves for the page of promises
REPORT = --junitxml=_build/tests

export OMP_NUM_THREADS = 1
export PYTHONHASHSEED = 0

.PHONY: book test site-test lint full soak bench engines conform clean help

help:
	@echo "make book       environment, notebooks in both languages, metrics page, both sites"
	@echo "make test       environment, all tests but the long ones and the site's"
	@echo "make site-test  the built site in Chromium, network cut"
	@echo "make lint       ruff and codespell as the commit hooks run them"
	@echo "make full       regenerate every published result (hours of CPU)"
	@echo "make soak       long tests: kills, fuzzing, damaged files, memory"
	@echo "make bench      against TRL and the floor, as ratios -> _build/bench.json"
	@echo "make engines    tests that need an environment of their own (JupyterLab)"
	@echo "make conform    the conformance matrix of ours, verl, TRL, OpenRLHF"

$(STAMP): requirements.txt pyproject.toml $(if $(LOCKED),requirements.lock)
	@$(PYTHON) -c 'import sys; sys.exit("Python >= 3.11 is needed, this is %d.%d: set PYTHON=" % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	@echo "environment: $(VENV) (a few minutes, once)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@# torch on its own first: what depends on it then keeps this build
	$(if $(LOCKED),,$(BIN)/python -m pip install --progress-bar off -q "$$(grep '^torch==' requirements.txt)")
	$(BIN)/python -m pip install --progress-bar off -q $(REQUIREMENTS)
	$(BIN)/python -m pip install --progress-bar off -q --no-deps -e .
	@touch $@

book: $(STAMP)
	$(BIN)/dapo book build

test: $(STAMP)
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadgroup -m "not site and not soak and not engines" $(REPORT)/test.xml

site-test: $(STAMP)
	$(BIN)/python -m pytest -q -m site tests $(REPORT)/site.xml

lint: $(STAMP)
	$(BIN)/ruff check . && $(BIN)/ruff format --check .

full: $(STAMP)
	$(BIN)/dapo experiments run --profile full --workers $(WORKERS)

soak: $(STAMP)
	$(BIN)/python -m pytest -q -m soak tests $(REPORT)/soak.xml

bench: $(STAMP)
	$(BIN)/python -m benchmarks.run

engines: $(STAMP)
	$(BIN)/python -m pytest -q -m engines tests $(REPORT)/engines.xml

conform: $(STAMP)
	$(BIN)/dapo conform --all --out dapo_lib/published

clean:
	rm -rf _build
