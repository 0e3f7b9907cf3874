# pqadmin: what a developer runs. `make serve` and `make test` need nothing but Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SERVE_READY := $(VENV)/.serve-ready
TEST_READY := $(VENV)/.test-ready
BENCH_READY := $(VENV)/.bench-ready
FAST := tests/queues tests/conformance tests/accounts tests/dashboard tests/live tests/people tests/wall

.DEFAULT_GOAL := help
.PHONY: help serve test test-fast lint format bench soak soak-sites pictures reference messages lock wheel wheel-check clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

serve: $(SERVE_READY) ## Start the site on 127.0.0.1:8000; the first start prints the admin's password once
	@exec $(BIN)/pqadmin serve

test: $(TEST_READY) ## Check and test everything; PQ_REQUIRE_BROWSER=1 insists on the browser suite
	@$(BIN)/python tests/site/run_all.py

test-fast: $(TEST_READY) ## Test the core on memory and LMDB and the site without a browser, in under 3 minutes
	$(BIN)/pytest -n auto --dist loadfile -q -m "not slow and not crash" $(FAST)

lint: $(TEST_READY) ## Check style, types and import directions
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(TEST_READY) ## Rewrite the sources in the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(BENCH_READY) ## Measure, in 45 minutes; NAMES="--quick" in 10, NAMES="shapes fairness" these alone
	$(BIN)/python -m benchmarks $(NAMES)

soak: $(TEST_READY) ## Ten minutes on a FoundationDB server that is killed again and again; needs fdbserver and fdbcli
	$(BIN)/python -m tests.soak.cluster_chaos

soak-sites: $(TEST_READY) ## Thirty minutes of two sites, four workers and two importers, killed, with wrong clocks; STORE=fdb:FILE on a cluster
	$(BIN)/python -m tests.soak.two_sites --store "$(STORE)"

pictures: $(TEST_READY) ## Take the documents' pictures anew, into docs/img; needs Chromium
	$(BIN)/python -m tests.browser.pictures

reference: $(SERVE_READY) ## Make docs/reference/python-api.md and http-api.md from the sources anew
	$(BIN)/python -m tests.site.api_page
	$(BIN)/python -m tests.site.http_api_page

messages: $(SERVE_READY) ## Collect the texts to translate and compile the translations; needs Debian's gettext
	cd pqadmin && ../$(BIN)/python ../manage.py makemessages --locale zh_Hans --no-wrap --no-location --no-obsolete
	cd pqadmin && ../$(BIN)/python ../manage.py compilemessages

lock: $(SERVE_READY) ## Choose newer versions of the dependencies within pyproject.toml's limits
	$(BIN)/python tests/site/lock.py

wheel: $(TEST_READY) ## Build the wheel into dist/
	$(BIN)/python -m build --wheel --no-isolation --outdir dist .

wheel-check: wheel ## Install the wheel with its locked dependencies into an empty environment and serve from there
	$(BIN)/python tests/site/wheel_check.py

clean: ## Remove what was built; leaves var/, the site's data
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "pqadmin needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

$(SERVE_READY): requirements.lock requirements-build.lock pyproject.toml | $(BIN)/python
	@rm -f $(TEST_READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock -r requirements-build.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

$(TEST_READY): requirements-dev.lock $(SERVE_READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@

$(BENCH_READY): requirements-bench.lock $(TEST_READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-bench.lock
	@touch $@
