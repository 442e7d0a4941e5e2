# Everything needs only Python 3.11 or newer, pip and make; the first target that runs sets the environment up.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal

.PHONY: help setup demo check test test-all bench lock clean

help:
	@echo "make demo      play, close, pay, archive and clean a season on servers of its own"
	@echo "make test      the tests, against real servers (make test-all: the slow ones too)"
	@echo "make check     ruff, mypy --strict and the import contracts"
	@echo "make bench     measure, as ratios to the floor and to the usual way"
	@echo "make lock      pin the newest versions in requirements.lock"

setup: $(READY)

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Finale needs Python 3.11 or newer; say make PYTHON=…")'
	@$(PYTHON) -m venv $(VENV) 2>/dev/null || { \
		$(PYTHON) -m venv --without-pip $(VENV) && $(PYTHON) -m pip --python $(BIN)/python install --quiet pip; }
	@echo "installing into $(VENV) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: setup
	@$(BIN)/finale demo

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

test: setup
	$(PYTEST)

test-all: setup
	$(PYTEST) -m "slow or not slow"

bench: setup
	$(BIN)/python -m bench.close
	$(BIN)/python -m bench.archive
	$(BIN)/python -m bench.writing
	$(BIN)/python -m bench.rewards

# An environment of its own, so that the tool that pins is not pinned by what it makes.
lock:
	$(PYTHON) -m venv .venv-lock && .venv-lock/bin/python -m pip install --quiet uv
	.venv-lock/bin/uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --upgrade \
		--generate-hashes --no-emit-index-url --no-annotate --no-header --output-file requirements.lock
	rm -rf .venv-lock

clean:
	rm -rf $(VENV) .venv-lock .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
