# The only list of commands; `make help` prints it. All paths are relative: the checkout may
# stand in a folder with spaces and letters of any alphabet.

PYTHON ?= python3
VENV := .venv/bin/python
PORT ?= 8000
NOTEBOOKS ?= chapters/*.ipynb

.DEFAULT_GOAL := help
.PHONY: help install browser book serve lab test lint refresh train atlas bench hub lock clean

# The course's matrices are small: more threads wait for each other longer than they compute.
book serve test refresh train atlas bench hub: export OMP_NUM_THREADS := 1

help: ## print this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' Makefile

install: ## set up .venv from requirements.txt
	@command -v "$(PYTHON)" >/dev/null || { echo "$(PYTHON) is not there: install Python 3.11 or newer" >&2; exit 1; }
	@"$(PYTHON)" tools/install.py

book: install ## build the site into _build/html
	@$(VENV) -m tools.build

serve: book ## build the site and show it at http://localhost:8000 (PORT=8000)
	@$(VENV) -m http.server --bind 127.0.0.1 --directory _build/html $(PORT)

lab: install ## open the chapters in JupyterLab
	@$(VENV) -m jupyterlab chapters

browser: install ## find or install the browser that the tests drive
	@"$(PYTHON)" tools/install.py --browser

test: book browser ## build the site and run every test
	@$(VENV) -m pytest --nbval --nbval-current-env --doctest-modules -n 2 --dist loadfile

lint: install ## check the Python files with ruff
	@$(VENV) -m ruff check
	@$(VENV) -m ruff format --check

refresh: install ## run the notebooks and store their outputs (NOTEBOOKS=chapters/02-*.ipynb)
	@$(VENV) -m tools.refresh $(NOTEBOOKS)

train: install ## train the small models of chapter 11 again and store their weights
	@$(VENV) -m tools.train

atlas: install ## measure the parity atlas of chapter 12 again
	@$(VENV) -m attnlib.atlas

bench: book browser ## run the benchmarks
	@set -e; for script in benchmarks/*.py; do $(VENV) -m "benchmarks.$$(basename "$$script" .py)"; done

hub: browser ## run three chapters at once on a JupyterHub of this machine
	@$(VENV) -m tools.hub

lock: install ## pin the packages of pyproject.toml in requirements.txt (UPGRADE=--upgrade)
	@$(VENV) -m uv pip compile --quiet --universal --python-version 3.11 --all-extras \
		--annotation-style line --custom-compile-command "make lock" $(UPGRADE) \
		pyproject.toml --output-file requirements.txt

clean: ## remove what was built; .venv stays
	rm -rf _build
