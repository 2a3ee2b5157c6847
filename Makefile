# Everything a developer does here, from a machine that has only Python 3.11+ and make.
#
# A set of requirements is installed once and remembered by a stamp in .venv, named after the contents of every file
# that decides what .venv holds. While those are unchanged, no target installs anything; when one changes, the stamp has
# another name and the set is installed again. Only tests that install packages themselves touch the network then.

PYTHON ?= python3
ARGS ?=

BIN := .venv/bin
KEY := $(shell cat requirements/*.txt pyproject.toml | cksum | tr -s ' \t' '-')
SET = .venv/.installed-$(1)-$(KEY)

export PIP_DISABLE_PIP_VERSION_CHECK := 1

# Two installers in one .venv would tread on each other; `make -j` is accepted and runs one recipe at a time.
.NOTPARALLEL:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help install run test chaos mutants lint bench docs format lock release clean

help: ## Say what there is to make
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' Makefile

install: $(call SET,dev) ## Set up .venv for development, and do nothing else

run: $(call SET,run) ## Start the service with the examples applied; ARGS="--port 9000" adds options
	$(BIN)/clickclock serve --click-profile open --examples examples $(ARGS)

# Five processes, also where there are two cores: two fifths of their time tests wait for what they killed or started. A
# file is one's, and the files come in the order of tests/conftest.py: the long ones first.
test: $(call SET,dev) ## Run the whole test suite; ARGS="tests/unit -x" runs a part, ARGS="-n 0 --pdb" in one process
	$(BIN)/python -m pytest -n 5 --dist loadfile --no-loadscope-reorder $(ARGS)

chaos: $(call SET,dev) ## Kill, freeze and cut off replicas for minutes, then count; ARGS="--seconds 60 --seed 7"
	$(BIN)/python -m tests.chaos $(ARGS)

mutants: $(call SET,dev) ## Change important lines in a copy, one after the other: a test has to notice each; ARGS="window" takes some
	$(BIN)/python -m tests.mutants $(ARGS)

lint: $(call SET,dev) ## Check style, formatting, types and the import law
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --num-workers 2
	$(BIN)/lint-imports

bench: $(call SET,bench) ## Run the benchmarks, with other schedulers beside ours; ARGS="due --quick" runs one, ARGS=--help lists them
	$(BIN)/python -m tests.bench $(ARGS)

docs: $(call SET,dev) ## Build the documentation as a site, and show it on http://127.0.0.1:8000
	$(BIN)/zensical serve $(ARGS)

format: $(call SET,dev) ## Rewrite the code in the house's format, and what is made from it: the tag, the page of commands
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/python -m tests.house.tag
	$(BIN)/python -m tests.house.cli_page

# The widest set is solved first and constrains the others, so that a package has one version everywhere.
# The files name versions and hashes only, never where a package came from.
LOCK = uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	--no-emit-index-url --no-emit-find-links pyproject.toml

lock: ## Solve the requirements anew (needs uv); ARGS=--upgrade takes newer versions
	@command -v uv >/dev/null || { echo "make lock needs uv: install it, then run make lock again." >&2; exit 1; }
	$(LOCK) --extra all --group bench -o requirements/bench.txt $(ARGS)
	$(LOCK) --extra all --group dev -c requirements/bench.txt -o requirements/dev.txt $(ARGS)
	$(LOCK) --group release -c requirements/bench.txt -o requirements/release.txt $(ARGS)
	$(LOCK) --extra attribution --extra encryption --extra oidc --extra traces --group build -c requirements/bench.txt -o requirements/run.txt $(ARGS)

release: $(call SET,release) ## Make what is shipped, in dist/: checks, wheel and image twice, SBOM, licences, advisories
	$(BIN)/python .ci/release $(ARGS)

clean: ## Remove .venv and every cache; the service's data stays
	rm -rf .venv .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist
	find src tests -type d -name __pycache__ -prune -exec rm -rf {} +

# pip is the last thing that venv writes: where it is missing, .venv was never finished and is made anew.
$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "clickclock needs Python 3.11 or newer and '$(PYTHON)' is not: install one, then say which," \
	    "for example: make $(firstword $(MAKECMDGOALS)) PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv --clear .venv || { rm -rf .venv; \
	  echo "'$(PYTHON) -m venv' failed: on Debian and Ubuntu, install python3-venv and try again." >&2; exit 1; }

# The stamps of older contents go first: if we die here, or someone goes back to them, nothing claims to be installed.
# pip would compile on one core; what is no Python of this version, as some packages bring, stays as it is.
.venv/.installed-%-$(KEY): | $(BIN)/pip
	@for stamp in .venv/.installed-*; do case "$$stamp" in *-$(KEY)) ;; *) rm -f "$$stamp" ;; esac; done
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/$*.txt --no-compile
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@$(BIN)/python -W ignore -m compileall -qq -j 0 .venv/lib || :
	@touch $@
