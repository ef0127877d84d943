# Every target first installs what it needs into .venv. PYTHON chooses the interpreter;
# COVERAGE=1 makes `make test` measure coverage; SHOTS is the folder of `make shots`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOWEST := .venv-lowest
SHOTS ?= build/shots

.PHONY: demo test check bench bench-scale test-slow test-integration test-lowest messages shots clean

demo: $(VENV)/.installed
	@$(BIN)/karat demo

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n auto --dist worksteal $(if $(COVERAGE),--cov --cov-report=term)

check: $(VENV)/.installed-test $(VENV)/.installed-check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/zensical build --strict

# The same tests with the full number of examples, and those marked `slow`.
test-slow: $(VENV)/.installed-test
	KARAT_SLOW=1 $(BIN)/python -m pytest -n auto --dist worksteal

# Write the golden files of messages and help texts again, after a text was changed.
messages: $(VENV)/.installed-test $(VENV)/.installed-integration
	KARAT_UPDATE=1 $(BIN)/python -m pytest tests/test_messages.py tests/test_help.py tests/test_interface.py \
		tests/report/test_screens.py tests/test_docs.py tests/integration/test_howto_pages.py \
		tests/integration/test_notebooks.py \
		tests/integration/test_spark.py::test_example_of_the_documentation_prints_what_it_shows

test-integration: $(VENV)/.installed-test $(VENV)/.installed-integration
	$(BIN)/python -m pytest tests/integration -n auto --dist loadfile
	$(MAKE) test-lowest

# The tests that use the dependencies most, with the lowest versions that pyproject.toml allows.
test-lowest: $(LOWEST)/.installed
	$(LOWEST)/bin/python -m pytest -n auto --dist worksteal $(addprefix tests/,cli data live match/test_evidence_texts.py report/test_charts.py report/test_html_report.py)

# Nine reports with screenshots of each: 1280 and 390 px, light and dark.
shots: $(VENV)/.installed-test $(VENV)/.installed-integration
	PYTHONPATH=tests $(BIN)/python tools/shots.py $(SHOTS)

# karat and other tools: writes benchmarks/RESULTS.md.
bench: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks

# Runs larger than memory, and Spark: writes benchmarks/SCALE.md; needs 11 GB in a temporary folder.
bench-scale: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks.scale

$(BIN)/pip:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# The package is installed in place, so only a change of its dependencies makes it stale.
$(VENV)/.installed: pyproject.toml | $(BIN)/pip
	$(BIN)/pip install --quiet --editable '.[report,live,dense]'
	touch $@

$(VENV)/.installed-%: pyproject.toml $(VENV)/.installed
	$(if $(filter bench,$*),$(BIN)/pip install --quiet --editable '.[bench]',$(BIN)/pip install --quiet --group $*)
	touch $@

$(LOWEST)/.installed: pyproject.toml $(VENV)/.installed-integration
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(LOWEST)
	$(BIN)/uv pip install --quiet --python $(LOWEST) --resolution lowest-direct --editable '.[report,live,dense]'
	$(BIN)/uv pip freeze --quiet --python $(LOWEST) --exclude-editable > $(LOWEST)/versions.txt
	$(BIN)/uv pip install --quiet --python $(LOWEST) --group test --constraint $(LOWEST)/versions.txt
	touch $@

clean:
	rm -rf $(VENV) $(LOWEST) karat-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage*
