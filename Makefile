# Everything installs what it needs into .venv first; PYTHON chooses the interpreter.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test check bench test-slow test-integration clean

demo: $(VENV)/.installed
	$(BIN)/karat demo

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n auto --cov --cov-report=term

check: $(VENV)/.installed-test $(VENV)/.installed-check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/zensical build --strict

test-slow: $(VENV)/.installed-test
	KARAT_SLOW=1 $(BIN)/python -m pytest -n auto

test-integration: $(VENV)/.installed-test $(VENV)/.installed-integration
	$(BIN)/python -m pytest tests/integration

bench: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks

$(BIN)/pip:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# The package itself is installed in place, so only its list of dependencies makes it stale.
$(VENV)/.installed: pyproject.toml | $(BIN)/pip
	$(BIN)/pip install --quiet --editable '.[report,live]'
	touch $@

$(VENV)/.installed-%: pyproject.toml $(VENV)/.installed
	$(if $(filter bench,$*),$(BIN)/pip install --quiet --editable '.[bench]',$(BIN)/pip install --quiet --group $*)
	touch $@

clean:
	rm -rf $(VENV) karat-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage*
