# Each target sets up what it needs by itself. See README.md.

ENV := .venv
ENV_221 := .venv-tf221
ENV_LINT := .venv-lint
PYTEST_ARGS ?= -q -n 2

.PHONY: demo test test-matrix test-tf221 faults lint format bench lock dist clean help

help:  ## show this help
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 16

demo: $(ENV)/.installed  ## train LinUCB on real data: handwritten digits
	$(ENV)/bin/python -m trainer $(DEMO_ARGS)

test: $(ENV)/.installed  ## run the tests
	$(ENV)/bin/python -m pytest $(PYTEST_ARGS)

test-matrix: test test-tf221  ## run the tests at both ends: TensorFlow 2.15 and 2.21

test-tf221: $(ENV_221)/.installed  ## run the tests with TensorFlow 2.21
	$(ENV_221)/bin/python -m pytest $(PYTEST_ARGS)

faults: $(ENV)/.installed  ## plant 21 faults into the trainer, one by one; all must be caught
	$(ENV)/bin/python scripts/planted_faults.py

lint: $(ENV)/.installed $(ENV_LINT)/.installed  ## style and types
	$(ENV_LINT)/bin/ruff check .
	$(ENV_LINT)/bin/ruff format --check .
	$(ENV_LINT)/bin/mypy testing trainer

format: $(ENV_LINT)/.installed  ## put the code into the common form
	$(ENV_LINT)/bin/ruff check --fix .
	$(ENV_LINT)/bin/ruff format .

bench: $(ENV)/.installed  ## the figures of README and docs (most of an hour)
	PYTHONPATH=$(CURDIR) $(ENV)/bin/python benchmarks/trainer.py
	PYTHONPATH=$(CURDIR) $(ENV)/bin/python benchmarks/fakes.py
	PYTHONPATH=$(CURDIR) $(ENV)/bin/python benchmarks/check_trainer.py
	PYTHONPATH=$(CURDIR) $(ENV)/bin/python benchmarks/cadence.py
	PYTHONPATH=$(CURDIR) $(ENV)/bin/python benchmarks/scale.py

LOCK := uv pip compile --quiet --python-version 3.11 --no-emit-index-url --no-header
lock:  ## resolve the lock files anew (needs uv)
	$(LOCK) --all-extras pyproject.toml trainer/pyproject.toml requirements/tf215.in -o requirements.lock
	$(LOCK) --all-extras pyproject.toml trainer/pyproject.toml requirements/tf221.in -o requirements-tf221.lock
	$(LOCK) requirements/lint.in -o requirements/lint.lock

dist: $(ENV)/.installed  ## build both wheels into dist/
	$(ENV)/bin/python -m pip wheel --quiet --no-deps -w dist . ./trainer

clean:  ## remove environments, caches and builds
	rm -rf $(ENV) $(ENV_221) $(ENV_LINT) dist build .pytest_cache .ruff_cache .mypy_cache

$(ENV)/.installed: requirements.lock scripts/make-env
	@scripts/make-env $(ENV) requirements.lock
	@touch $@

$(ENV_221)/.installed: requirements-tf221.lock scripts/make-env
	@scripts/make-env $(ENV_221) requirements-tf221.lock
	@touch $@

$(ENV_LINT)/.installed: requirements/lint.lock scripts/make-env
	@scripts/make-env $(ENV_LINT) requirements/lint.lock
	@touch $@
