# The only list of commands; `make help` prints it. All paths are relative: the checkout may
# stand in a folder with spaces and letters of any alphabet.

PYTHON ?= python3
VENV := .venv/bin/python
PORT ?= 8000

.DEFAULT_GOAL := help
.PHONY: help install ready browser book pdf serve lab check test faults lint refresh train atlas bench sheets lock licenses clean

# Some images of containers set it. Then each kernel and each build would compile all packages anew,
# which takes longer than what it then does.
unexport PYTHONDONTWRITEBYTECODE

# The course's matrices are small: more threads wait for each other longer than they compute.
book pdf serve sheets check test faults refresh train atlas bench: export OMP_NUM_THREADS := 1

help: ## print this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' Makefile

install: ## set up .venv from requirements.txt; `make book` alone needs a small part of it
ready: PART := --book
install ready:
	@command -v "$(PYTHON)" >/dev/null || { echo "$(PYTHON) is not there: install Python 3.11 or newer" >&2; exit 1; }
	@"$(PYTHON)" tools/install.py $(PART)

book: ready ## build the site into _build/html
	@$(VENV) -m tools.build $(SERVED)

pdf: install book browser ## print the built site as one book, _build/attention-by-hand.pdf
	@$(VENV) -m tools.pdf

sheets: book ## copy the course without the solutions of its exercises into _build/sheets, with its pages
	@$(VENV) -m tools.sheets

serve: SERVED := --served
serve: book ## build the site and show it at http://localhost:8000 (PORT=8000)
	@$(VENV) -m http.server --bind 127.0.0.1 --directory _build/html $(PORT) || \
		{ echo "Nothing is served. If port $(PORT) is in use: make serve PORT=8001" >&2; exit 1; }

lab: install ## open the chapters in JupyterLab
	@$(VENV) -m jupyterlab $(if $(filter 0,$(shell id -u)),--allow-root) chapters

browser: ready ## find or install the browser that the tests drive
	@"$(PYTHON)" tools/install.py --browser

PYTEST := -m pytest --nbval --nbval-current-env -n 2 --dist loadfile --no-loadscope-reorder
# What looks at each chapter and each widget, wherever it is; and in the browser the chapters named.
LOOK := $(addprefix tests/,$(addsuffix .py,test_course test_exercises test_house \
	test_model_map test_symbols site/test_site widgets/test_all_widgets))
NAMED = $(wildcard $(NOTEBOOKS))
VISIT = tests/site/test_visits.py::test_a_visit_leaves_nothing_behind
SCREEN = tests/site/test_frame.py::test_the_first_screen_has_the_picture_and_its_main_control

check: install book browser ## build the site and run what a new chapter or widget can break (NOTEBOOKS=chapters/02-*.ipynb)
	@$(VENV) $(PYTEST) $(LOOK) $(NAMED) $(NAMED:%.ipynb='$(VISIT)[%.html]') \
		$(patsubst chapters/%.ipynb,'$(SCREEN)[%]',$(filter chapters/%,$(NAMED)))

test: install book browser ## build the site and run every test
	@$(VENV) $(PYTEST) --doctest-modules

faults: install book ## plant faults in a copy of the checkout and say what happened (Linux, as root)
	@$(VENV) -m tools.faults

BIOME := @biomejs/biome@2.6.8# $schema in biome.json names it too

lint: install ## check Python with ruff, JavaScript and CSS with Biome (needs npm)
	@$(VENV) -m ruff check
	@$(VENV) -m ruff format --check
	@command -v npm >/dev/null || { echo "npm is not there: make lint runs $(BIOME) with it" >&2; exit 1; }
	@npm exec --yes --package=$(BIOME) -- biome check --error-on-warnings

refresh: install ## run the notebooks and store their outputs, and what follows from them elsewhere (NOTEBOOKS=chapters/02-*.ipynb)
	@$(VENV) -m tools.refresh $(NOTEBOOKS)
	@$(VENV) -m _ext.course.chapters

train: install ## train the models of letters and of stories again and store their weights
	@$(VENV) -m tools.train
	@$(VENV) -m tools.train_writer
	@$(VENV) -m tools.scale_writer
	@$(VENV) -m tools.compare_writer

atlas: install ## measure the parity atlas again
	@$(VENV) -m attnlib.atlas
	@$(VENV) -m attnlib.onnx_cases

bench: install book browser ## run the benchmarks
	@set -e; for script in benchmarks/*.py; do $(VENV) -m "benchmarks.$$(basename "$$script" .py)"; done

COMPILE = $(VENV) -m uv pip compile --quiet --universal --python-version 3.11 \
	--annotation-style line --custom-compile-command "make lock" pyproject.toml
HASHED = $(COMPILE) --constraint requirements.txt --no-annotate --generate-hashes

lock: install ## pin the packages of pyproject.toml in requirements.txt, with hashes in requirements*.lock (UPGRADE=--upgrade)
	@$(COMPILE) --all-extras $(UPGRADE) --output-file requirements.txt
	@$(HASHED) --all-extras --no-emit-package torch --output-file requirements.lock
	@$(HASHED) --extra book --output-file requirements-book.lock

licenses: install ## list the licenses of what the site is made with in THIRD-PARTY.txt
	@$(VENV) -m tools.licenses

clean: ## remove what was built; .venv stays
	rm -rf _build
