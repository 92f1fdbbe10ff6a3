# Every target sets up what it needs; see README.md, "For developers". `make PYTHON=python3.12 ...` picks a Python.
.DEFAULT_GOAL := help
.PHONY: help setup setup-tests run test lint perf screenshots translations clean

BIN := .venv/bin

help:
	@echo "make run    set up, then open the window (without a screen: chat in the terminal)"
	@echo "make test   set up, then every check and every test"
	@echo "make setup  set up only (.venv/, the engine)"
	@echo "make lint   set up, then the checks without the tests"
	@echo "make perf   list the benchmarks and how to run them"
	@echo "make screenshots   pictures of every page, both themes, both languages, two scales, into build/screenshots"
	@echo "make translations  bring resources/translations up to date with the source"
	@echo "make clean  remove .venv/ and what checks and builds leave (the engine in the user's cache stays)"

setup:
	@packaging/setup.sh

# What the tests and the pictures need beside that: Xvfb, xdotool, fonts, strace.
setup-tests:
	@packaging/setup.sh --tests

run: setup
	@$(BIN)/tandem

lint: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

# pytest's closing line is the last one printed.
test: setup-tests lint
	@$(BIN)/python -m pytest tests -q

perf: setup
	@echo "Benchmarks print medians and ratios; run one at a time on an idle machine:"
	@find tests/perf -name 'bench_*.py' | sort | sed 's|^|  $(BIN)/python |'

screenshots: setup-tests
	@$(BIN)/python packaging/screenshots.py build/screenshots

translations: setup
	@$(BIN)/python packaging/translations.py

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis build dist set-up-apt.log
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
