# Everything a newcomer needs: `make demo` to see it work, `make test` to prove it.
# Each target does its own set-up; nothing needs root, Docker or an account.

PYTHON ?= python3
BIN := .venv/bin
# Tests run on all cores; random order is part of the run, the seed is printed.
# Many tests wait for other programs more than they compute: two a core.
PYTEST := $(BIN)/python -m pytest -n $(shell $(PYTHON) -c 'import os; print(2 * (os.cpu_count() or 1))') --dist worksteal

# Tests start hundreds of programs: what they load is compiled once, whatever the session says.
unexport PYTHONDONTWRITEBYTECODE

# The programs of others that `make judges` installs; tests/support/judges.py has them all.
JUDGES := opa talosctl sops task kube-apiserver etcd gitea

# What `make quick` compares with.
BASE ?= HEAD

.PHONY: help setup tools demo demo-cluster test quick check types lint-and-project docs site pictures lock release bench soak judges clean

help: ## Show what can be made.
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: ## Make the virtual environment in .venv (quick when it is up to date).
	@$(PYTHON) scripts/setup.py

tools: setup ## Install OpenTofu into the user's cache (some minutes, once, where it must be built).
	@$(BIN)/stackyard tools install tofu

demo: tools ## See the main job run, without hardware.
	@$(BIN)/python -m scripts.demo

demo-cluster: tools ## See a Talos cluster come up, without hardware, to software that Git describes.
	@$(BIN)/python -m scripts.demo_cluster

check: setup ## Format, lint, types, layers, documentation.
	@$(MAKE) --no-print-directory -j 2 --output-sync=target types lint-and-project

# The types take one core for a minute where nothing is cached; the rest of the check fits beside them.
types:
	$(BIN)/mypy

lint-and-project:
	$(BIN)/ruff format --check src tests scripts bench
	$(BIN)/ruff check src tests scripts bench
	$(BIN)/python -m pytest tests/project

test: check tools ## Everything: check, then unit, contract and end-to-end tests.
	$(PYTEST) tests --ignore=tests/project

quick: setup ## Lint, layers and the tests near a change (against HEAD, or BASE=REV): two minutes.
	$(BIN)/python -m scripts.quick $(BASE)

soak: tools ## Long fault and load runs, with counts.
	$(BIN)/python -m pytest -m soak -s tests

judges: tools ## Install the programs of others that judge our work, and run and count their tests.
	@for tool in $(JUDGES); do $(BIN)/stackyard tools install $$tool || exit 1; done
	$(PYTEST) -m 'judges and not soak' tests

docs: setup ## Write the generated reference pages.
	$(BIN)/python -m scripts.generate_docs

site: ## Build the documentation as a site in build/site/html, every link checked.
	@$(PYTHON) scripts/site.py

pictures: tools ## Draw the pictures of docs/pictures again, where what they show has changed.
	STACKYARD_TEST_PICTURES=write $(BIN)/python -m pytest -m pictures tests

lock: setup ## Compile requirements.lock from pyproject.toml.
	$(PYTHON) scripts/lock.py

release: setup ## Build dist/: wheel, source distribution, pinned requirements, install.sh and their sums.
	$(BIN)/python -m scripts.release

bench: tools ## Measure what is promised, each against a floor from the same run.
	$(BIN)/python -m bench

clean: ## Remove what was made in this folder (the tools in the user's cache stay).
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
