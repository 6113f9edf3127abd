# Everything a newcomer needs: `make demo` and `make test`. Both make their own virtual
# environment in .venv and install what they need into it; nothing else is touched.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(not (3,11) <= sys.version_info[:2] < (3,14))' 2>/dev/null \
	&& { echo $$p; break; }; done)
VENV   ?= .venv
# Where torch comes from: any pip arguments, such as an index of CPU builds.
TORCH  ?= torch==2.13.0
TORCH_ARGS ?=
# For a platform that some package has no wheel for: LOCK_ARGS= builds it here.
LOCK_ARGS ?= --only-binary :all:

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q

# What a lock names is installed by its hash. torch is not in it, see constraints.txt; what torch
# needs is, so that only torch's own builds (and their CUDA packages) come without one. Python
# compiles a module when it is first imported; pip would compile all, which takes a minute.
define from_lock
	$(PIP) install --no-compile $(LOCK_ARGS) --require-hashes -r requirements/$(1).lock
	$(PIP) install --no-compile $(TORCH_ARGS) "$(TORCH)"
	$(PIP) install --no-compile --no-deps --no-build-isolation -e .
	@touch $@
endef

# Tests start thousands of interpreters: each would compile all of ours anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: lock audit demo test test-quick lint bench soak docs docs-env pictures simulate nightly mutations enable test-nfs fuzz lines clean help

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

$(VENV)/.made:
	@test -n "$(PYTHON)" || { echo "bequeath needs Python 3.11 to 3.13: make PYTHON=/path/to/python"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.demo: $(VENV)/.made requirements/demo.lock constraints.txt pyproject.toml
	$(call from_lock,demo)

$(VENV)/.dev: $(VENV)/.made requirements/dev.lock constraints.txt pyproject.toml
	$(call from_lock,dev)

demo: $(VENV)/.demo  ## evolution with inherited weights on digits, about two minutes
	@PATH="$(CURDIR)/$(BIN):$$PATH" examples/digits_evolution/demo.sh

test: $(VENV)/.dev  ## the test suite, folder by folder; its last line says what was left out: EXTENDED=1 also runs what repeats at length
	$(if $(EXTENDED),BEQUEATH_TESTS=all) $(BIN)/python tests/run.py $(if $(AGAIN),--again $(AGAIN)) $(TESTS)

test-quick: lint  ## for the daily round, minutes: lint, unit tests, simulation, one real run
	$(BIN)/python tests/run.py --quick

lint: $(VENV)/.dev  ## ruff, mypy --strict, import contracts, dead code
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/vulture

bench: $(VENV)/.dev  ## the benchmarks, with peers in environments of their own
	$(BIN)/python -m benchmarks $(BENCH)

soak: $(VENV)/.dev  ## 20,000 trials in bounded memory, threads, descriptors and disk: minutes
	$(BIN)/python -m benchmarks soak

docs: $(VENV)/.dev $(VENV)/docs/.made  ## regenerate the reference pages, and build the site of all pages into site/
	$(BIN)/python docs/generate.py
	$(VENV)/docs/bin/python -m mkdocs build --strict

docs-env: $(VENV)/docs/.made  ## what builds the site, in an environment of its own

pictures: $(VENV)/.dev  ## take the pictures of docs/web.md anew, in Chromium (make enable)
	BEQUEATH_GUIDE_PICTURES=docs/pictures $(BIN)/python -m pytest -q tests/system/page/test_guide_pictures.py

simulate: $(VENV)/.dev  ## more seeds of the simulation: make simulate SEEDS=10000 FIRST_SEED=0, or SEED=17
	$(BIN)/python -m tests.sim $(if $(SEED),--seed $(SEED),--seeds $(or $(SEEDS),1000) --first $(or $(FIRST_SEED),0)) $(SIM_ARGS)

nightly: $(VENV)/.dev  ## 100,000 seeds of the simulation; interrupt it, and it goes on there: make nightly FIRST_SEED=0
	$(BIN)/python -m tests.sim --seeds $(or $(SEEDS),100000) --first $(or $(FIRST_SEED),0) --progress $(or $(PROGRESS),.nightly.json) $(SIM_ARGS)

mutations: $(VENV)/.dev  ## plant each known fault in a copy and see that it is found: MUTATIONS="name …"
	$(BIN)/python -m tests.mutations $(MUTATIONS)

enable:  ## as root, once: install what the system tests need; no service is started
	tests/system/enable.sh
	tests/system/enable_ray.sh
	tests/system/enable_trackers.sh tensorboard jupyter frames

test-nfs: enable $(VENV)/.dev  ## as root: NFS between machines with kernels of their own; no service starts here
	$(BIN)/python -m pytest -q tests/system/nfs

fuzz: $(VENV)/.dev  ## hostile peers for longer: make fuzz SECONDS=600 FIRST_SEED=0
	FUZZ_SECONDS=$(or $(SECONDS),600) FUZZ_FIRST_SEED=$(or $(FIRST_SEED),0) $(BIN)/python -m pytest -q tests/fuzz

lines: $(VENV)/.dev  ## as root: links cut, sshd killed, tunnels flapping for a minute: make lines SECONDS=300
	LINE_SECONDS=$(or $(SECONDS),60) $(BIN)/python -m pytest -q tests/integration/machines/test_bad_lines.py

# Environments of their own: for the site, and for what renews the locks.
$(VENV)/tools/.made $(VENV)/docs/.made: $(VENV)/%/.made: requirements/%.lock
	$(PYTHON) -m venv --clear $(@D)
	$(@D)/bin/python -m pip --disable-pip-version-check -q install --no-compile $(LOCK_ARGS) --require-hashes -r $<
	@touch $@

lock: $(VENV)/tools/.made  ## renew the locks: the newest versions that pyproject.toml admits, with hashes
	requirements/renew.sh $(VENV)/tools/bin/uv

audit: $(VENV)/tools/.made  ## look for known holes in what the locks name; says so where no list of them can be had
	$(VENV)/tools/bin/python requirements/audit.py

clean:  ## remove what make made
	rm -rf $(VENV) site .pictures .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
