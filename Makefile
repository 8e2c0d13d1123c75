# The only list of commands; `make help` prints it. All paths are relative: the checkout may
# stand in a folder with spaces and letters of any alphabet.

PYTHON ?= python3
VENV := .venv/bin/python
PORT ?= 8000
NOTEBOOKS ?= chapters/*.ipynb

.DEFAULT_GOAL := help
.PHONY: help install browser book pdf lite serve lab test faults lint refresh train atlas bench hub lock licences clean

# The course's matrices are small: more threads wait for each other longer than they compute.
book pdf lite serve test faults refresh train atlas bench hub: export OMP_NUM_THREADS := 1

help: ## print this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' Makefile

install: ## set up .venv from requirements.txt
	@command -v "$(PYTHON)" >/dev/null || { echo "$(PYTHON) is not there: install Python 3.11 or newer" >&2; exit 1; }
	@"$(PYTHON)" tools/install.py

book: install ## build the site into _build/html
	@$(VENV) -m tools.build

pdf: book browser ## print the built site as one book, _build/attention-by-hand.pdf
	@$(VENV) -m tools.pdf

lite: book ## add JupyterLite to the site, to run chapters in the browser (PYODIDE=folder or address)
	@$(VENV) -m tools.lite

serve: book ## build the site and show it at http://localhost:8000 (PORT=8000)
	@$(VENV) -m http.server --bind 127.0.0.1 --directory _build/html $(PORT)

lab: install ## open the chapters in JupyterLab
	@$(VENV) -m jupyterlab chapters

browser: install ## find or install the browser that the tests drive
	@"$(PYTHON)" tools/install.py --browser

test: book browser ## build the site and run every test
	@$(VENV) -m pytest --nbval --nbval-current-env --doctest-modules -n 2 --dist loadfile

faults: book ## plant faults in a copy of the checkout and say what happened (Linux, as root)
	@$(VENV) -m tools.faults

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

COMPILE = $(VENV) -m uv pip compile --quiet --universal --python-version 3.11 --all-extras \
	--annotation-style line --custom-compile-command "make lock" pyproject.toml

lock: install ## pin the packages of pyproject.toml in requirements.txt, with hashes in requirements.lock (UPGRADE=--upgrade)
	@$(COMPILE) $(UPGRADE) --output-file requirements.txt
	@$(COMPILE) --constraint requirements.txt --no-emit-package torch --no-annotate \
		--generate-hashes --output-file requirements.lock

licences: install ## list the licences of what the site is made with in THIRD-PARTY.txt
	@$(VENV) -m tools.licences

clean: ## remove what was built; .venv stays
	rm -rf _build
