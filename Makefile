# The two jobs: `make audit` and `make test`. Each makes the environment that it needs in .venv first.
.PHONY: env test-tools audit test test-slow test-exhaustive lint lock clean
MAKEFLAGS += --no-print-directory

VENV := .venv
# On Linux x86-64 with the compiler of TPUs (the extra [tpu]), which needs no TPU.
LOCKED := $(if $(filter Linux-x86_64,$(shell uname -s)-$(shell uname -m)),requirements-tpu.txt,requirements-cpu.txt)
BIN := $(VENV)/bin
# Errors only: pip warns of the user's own settings.
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input -qq
UV := uv
LOCK := $(UV) pip compile --quiet --universal --generate-hashes --no-header
# A Python 3.11 to 3.13 of this machine, a newer one where there is none; or say it: make env PYTHON=python3.12
PYTHON = $(shell scripts/find_python 3.11 3.12 3.13 or-newer)
# Python files whose names do not say so.
SCRIPTS := scripts/bench scripts/docs scripts/schemas
export PIP_ROOT_USER_ACTION := ignore

env: $(VENV)/.package
	@:

# A stamp is written last: where it is missing or older than its lock, an installation was interrupted or is out of date.
# It is then made afresh. Every file has a hash in the lock; nothing is built from source but this package itself, with the
# setuptools of the lock.
$(VENV)/.locked: $(LOCKED)
	@python='$(PYTHON)'; \
	test -n "$$python" || { echo 'no Python 3.11 or newer that can make environments (Debian: install python3-venv)'; exit 2; }; \
	echo "making $(VENV) with $$($$python --version) from $(LOCKED)"; \
	$$python -m venv --clear $(VENV)
	@$(PIP) install --require-hashes --only-binary :all: -r $(LOCKED)
	@touch $@

$(VENV)/.package: $(VENV)/.locked pyproject.toml
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

test-tools: $(VENV)/.tested
	@:

$(VENV)/.tested: $(VENV)/.package requirements-test.txt
	@$(PIP) install --require-hashes --only-binary :all: --no-deps --ignore-installed -r requirements-test.txt
	@touch $@

audit: env
	@$(BIN)/kernel-audit run regression --out evidence/regression

test: test-tools
	@$(BIN)/python -m pytest -n 2 --dist worksteal

test-slow: test-tools
	@$(BIN)/python -m pytest -n 2 --dist worksteal --durations=40 -m 'slow and not device'

test-exhaustive: test-tools
	@$(BIN)/python -m pytest -n 2 --dist worksteal -m 'exhaustive and not device'

lint: test-tools
	@$(BIN)/ruff check . $(SCRIPTS)
	@$(BIN)/ruff format --check . $(SCRIPTS)

lock:
	@$(LOCK) --python-version 3.11 requirements-cpu.in --output-file requirements-cpu.txt
	@$(LOCK) --python-version 3.11 requirements-test.in --output-file requirements-test.txt
	@$(LOCK) --python-version 3.11 requirements-tpu.in --output-file requirements-tpu.txt
	@$(LOCK) --python-version 3.11 requirements-cuda.in --output-file requirements-cuda.txt
	@{ sed -n '/^#/p' requirements-tpu.in; sed '/^#/d' requirements-tpu.txt; } > .locked-tpu && mv .locked-tpu requirements-tpu.txt
	@$(LOCK) --python-version 3.13 requirements-newest.in --output-file requirements-newest.txt

clean:
	rm -rf $(VENV) .venv-newest .venv-cuda build dist src/*.egg-info .pytest_cache .ruff_cache .hypothesis
