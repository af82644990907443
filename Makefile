# The only developer interface. Every target works on a fresh machine with python3 and make.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Neighbours stay together, as do the clusters of their modules, until a worker has nothing left.
SHARED := -n auto --dist worksteal

# Every worker, and every program that the tests start, would compile all sources anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo install test lint types contracts unit test-workflows test-real kubernetes attacks bench docs screenshots facts lock clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Two stamps, because a user who only runs the demo should not wait for the test tools.
$(VENV)/.installed: requirements.lock pyproject.toml src/kvestigate/console/browser_assets.json
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --editable .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed requirements-dev.lock
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements-dev.lock
	-$(BIN)/python tools/browser_assets.py tests/console/browser_tools.json tests/console/third_party
	@touch $@

install: $(VENV)/.installed ## create .venv with the kvestigate command in it

demo: $(VENV)/.installed ## from nothing to a GPU fleet, a job that ran on it, and what is wrong with it
	$(BIN)/kvestigate demo

test: lint types contracts unit ## lint, types, import contracts, the tests that need no Kubernetes

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

contracts: $(VENV)/.installed-dev
	$(BIN)/lint-imports --no-cache

unit: $(VENV)/.installed-dev
	$(BIN)/python -m pytest $(SHARED)

test-workflows: $(VENV)/.installed-dev ## whole workflows on embedded clusters, which take longer
	$(BIN)/python -m pytest $(SHARED) -m "workflow and not real"

kubernetes: ## build the real control plane, kubectl and etcd (needs Go; cached)
	@test -n "$(KVESTIGATE_KUBE_BIN)" || tools/kubernetes/build >/dev/null

test-real: $(VENV)/.installed-dev kubernetes ## every test that runs against real Kubernetes
	$(BIN)/python -m pytest -m real

attacks: $(VENV)/.installed-dev ## a million random requests at a gateway, and 200 kills of one
	$(BIN)/python -m tests.attacks.gateway.fuzz 1000000
	$(BIN)/python -m tests.attacks.hosts.crashes 200

bench: $(VENV)/.installed-dev kubernetes ## speed and memory beside the peers, as ratios
	$(BIN)/python -m bench

docs: $(VENV)/.installed-dev ## regenerate the command reference from --help
	$(BIN)/python -m tools.docs

screenshots: $(VENV)/.installed-dev ## take the pictures of the console in the docs (needs Chromium)
	$(BIN)/python -m tests.console.screenshots

facts: $(VENV)/.installed-dev ## regenerate the facts table of built-in types
	$(BIN)/python tools/facts.py

lock: ## pin every dependency with its hashes
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	    --no-emit-index-url --no-emit-find-links -o requirements.lock pyproject.toml
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	    --no-emit-index-url --no-emit-find-links -c requirements.lock -o requirements-dev.lock --group dev

clean: ## remove what the other targets made here
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
