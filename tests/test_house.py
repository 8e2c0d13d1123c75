"""The rules of the house, as tests: imports, chapters, contents, citations, versions, commands.

Each test collects every offence before it fails, so that one run shows all there is to mend.
"""

import ast
import bisect
import difflib
import functools
import itertools
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from urllib.parse import unquote_plus

import nbformat
import pytest
import yaml
from IPython.core.inputtransformer2 import TransformerManager
from packaging.requirements import Requirement

import attnlib.widgets
from _ext.course import chapters as course
from _ext.practice.exercises import TITLES
from _ext.widgets.page import engine
from attnlib import check
from attnlib.widgets.kit.base import constant_traits
from tools import build, licenses
from tools.refresh import KERNEL

ROOT = Path(__file__).resolve().parent.parent
CHAPTERS = [chapter.path for chapter in course.read()]

MATHEMATICS = {"attention", "masks", "positions", "multihead", "norms", "feed_forward", "layers"}
MATHEMATICS |= {"blockwise", "caches", "experts", "gradients", "inspection", "judging", "linear"}
BELOW = {"numpy", "inputs"}  # what all of the mathematics stands on
# What each module of attnlib may import besides the standard library. Imports point down.
MAY_IMPORT = {
    **dict.fromkeys(("palette", "speed", "world"), frozenset()),
    **dict.fromkeys(("attention", "masks", "positions", "caches", "projections", "norms"), BELOW),
    **dict.fromkeys(("linear", "judging", "serving"), BELOW),
    **dict.fromkeys(("blockwise", "gradients"), BELOW | {"attention"}),
    **dict.fromkeys(("bridge", "atlas"), {"numpy", "torch", "bridge"} | MATHEMATICS),
    "__init__": MATHEMATICS,
    "inputs": {"numpy"},
    "multihead": BELOW | {"attention", "caches", "projections"},
    "feed_forward": BELOW | {"scipy", "projections"},
    "experts": BELOW | {"attention", "masks", "projections"},
    "inspection": BELOW | {"attention", "multihead", "norms", "projections"},
    "layers": BELOW | {"multihead", "norms", "feed_forward", "projections"},
    "onnx_cases": BELOW | {"attention", "multihead", "onnx"},
    "models": BELOW
    | {"models", "world", "safetensors", "tokenizers", "huggingface_hub"}
    | MATHEMATICS,
    "plots": BELOW | {"matplotlib", "matplotlib_inline", "palette"} | MATHEMATICS,
    "check": {"numpy", "check", "models", "world"} | MATHEMATICS,
    "widgets": {"numpy", "anywidget", "traitlets", "wasmtime", "palette", "widgets"}
    | {"atlas", "models", "serving", "world"}
    | MATHEMATICS,
}

# What every chapter opens with: its title, and a box with a concrete sentence and the question.
OPENING = re.compile(r"# \d+\. .+\n\n:::\{div\}\n:class: lead\n\n(.+)\n:::")
MOST_WORDS_OF_A_LEAD = 40
# The sections that every chapter has, in this order, with or without more after a colon; a chapter
# may have others between them.
REQUIRED = [
    "Exercises",
    "Find the bug",
    "Quiz",
    "What you can do now",
    "Takeaways",
    "Sources and next steps",
]
MOST_LINES = 12
MOST_OPEN_LINES, MOST_COLUMNS = 60, 76
MOST_LINES_OF_A_FUNCTION = 60  # of a checker, from `def` to its end, with what is nested


# Made by the commands, never part of the checkout.
NOT_OURS = {".git", ".venv", "_build", "__pycache__", ".ipynb_checkpoints", ".hypothesis"}
# A path of a machine, what is unfinished, and what is announced.
NOWHERE = re.compile(
    r"(?<![\w.~-])/(?:home|Users|root|work|opt|tmp)/\w|(?i:\bTOD[O]\b|\bFIXM[E]\b|coming [s]oon)"
)


def assert_none(offences, advice=""):
    """Fail with the whole list of offences, which pytest's own message would cut short."""
    __tracebackhide__ = True
    offences = list(offences)
    if offences:
        pytest.fail("\n".join([advice, *offences]))


# Imports


def imported(node):
    """Return the modules that an import names; one of attnlib as its first part below attnlib."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.module == "attnlib" and not node.level:
        names = [f"attnlib.{alias.name}" for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        names = ["." * node.level + (node.module or "")]
    else:
        names = []
    parts = (name.split(".") for name in names)
    return [part[1] if part[0] == "attnlib" and len(part) > 1 else part[0] for part in parts]


def modules():
    """Yield (module of attnlib, its path below attnlib, its syntax tree)."""
    for path in sorted((ROOT / "attnlib").rglob("*.py")):
        name = path.relative_to(ROOT / "attnlib")
        yield name.parts[0].removesuffix(".py"), name, ast.parse(path.read_text(encoding="utf-8"))


def test_modules_have_their_places_and_import_what_they_may():
    offences = []
    for module, path, tree in modules():
        if module not in MAY_IMPORT:
            offences.append(f"{path}: say in MAY_IMPORT what it may import")
        if not (ROOT / "attnlib" / path.parent / "__init__.py").exists():
            offences.append(f"{path}: it is not installed without an __init__.py")
        may = MAY_IMPORT.get(module, set()) | sys.stdlib_module_names
        for node in ast.walk(tree):
            offences += [f"{path}: {name}" for name in imported(node) if name not in may]
            if module == "check" and isinstance(node, ast.FunctionDef):
                if node.end_lineno - node.lineno >= MOST_LINES_OF_A_FUNCTION:
                    offences.append(f"{path}: {node.name} has too many lines")
    assert_none(offences)


def test_torch_is_imported_inside_functions_only():
    def outside_functions(node):
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                yield child
                yield from outside_functions(child)

    offences = [
        str(path)
        for _, path, tree in modules()
        if any("torch" in imported(node) for node in outside_functions(tree))
    ]
    assert_none(offences)


def test_import_attnlib_loads_the_mathematics_alone():
    heavy = {"torch", "matplotlib", "anywidget", "ipywidgets", "IPython", "tokenizers"}
    heavy |= {"safetensors", "huggingface_hub", "transformers"}
    code = f"import attnlib.models, sys; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert (done.stdout, done.stderr) == ("[]\n", "")


# Chapters


@pytest.fixture(scope="module")
def chapters():
    """Return the chapters as {file name: notebook}."""
    assert CHAPTERS, "there are no chapters"
    return {path.name: nbformat.read(path, as_version=4) for path in CHAPTERS}


@pytest.fixture(scope="module")
def code(chapters):
    """Return every code cell as (place, number among the code cells, cell, syntax tree)."""
    plain = TransformerManager().transform_cell  # magics become Python
    return [
        (f"{name}, code cell {number}", number, cell, ast.parse(plain(cell.source)))
        for name, notebook in chapters.items()
        for number, cell in enumerate(
            (cell for cell in notebook.cells if cell.cell_type == "code"), start=1
        )
    ]


def shows_a_value(tree):
    """Tell whether a cell ends in an expression that gives something to see."""
    if not (tree.body and isinstance(tree.body[-1], ast.Expr)):
        return False
    called = getattr(tree.body[-1].value, "func", None)
    # np.testing.assert_allclose and the like return nothing.
    return not ast.unparse(called).split(".")[-1].startswith("assert") if called else True


def is_ignored_in_silence(number, cell, tree):
    """Tell whether a cell is skipped, or its output ignored without a comment that says why."""
    marks = " ".join([*cell.metadata.get("tags", []), cell.source]).lower().replace("_", "-")
    comments = re.findall(r"#\s*(?!NBVAL)\w.*", cell.source)
    return "nbval-skip" in marks or ("nbval-ignore-output" in marks and not comments)


def belongs_on_top(node):
    """Tell whether a node imports something, or makes random numbers."""
    made = isinstance(node, ast.Call) and ast.unparse(node.func).endswith("default_rng")
    return bool(imported(node)) or made


OTHERS = re.compile(
    rf"%run|\b(?:import|from) chapters\b|(?:{'|'.join(re.escape(path.stem) for path in CHAPTERS)})"
)
# What must be true of no cell of code, given its number, itself and its syntax tree. nbval runs
# cells outside of IPython's history, where a semicolon hides nothing: the value would be one output
# more than is stored. The first cell sets up, and the lines of a guess are text.
NO_CELL = {
    "run `make refresh`: cells run once from top to bottom": (
        lambda number, cell, tree: cell.execution_count != number
    ),
    "run `make refresh`: what a cell shows is stored": (
        lambda number, cell, tree: number > 1 and shows_a_value(tree) and not cell.outputs
    ),
    "mend the error that is stored": (
        lambda number, cell, tree: any(each.output_type == "error" for each in cell.outputs)
    ),
    "never skip a cell; say in a comment why an output is ignored": is_ignored_in_silence,
    "give the value a name, with no semicolon": (
        lambda number, cell, tree: cell.source.rstrip().endswith(";")
    ),
    f"write at most {MOST_LINES} lines": (
        lambda number, cell, tree: (
            len(cell.source.splitlines()) > MOST_LINES and not cell.source.startswith("Guess(")
        )
    ),
    "import and make random numbers in the first cell, and there alone": (
        lambda number, cell, tree: any(map(belongs_on_top, ast.walk(tree))) != (number == 1)
    ),
    "a chapter stands alone: it names no other file of `chapters/`": (
        lambda number, cell, tree: OTHERS.search(cell.source)
    ),
}


@pytest.mark.parametrize("rule", NO_CELL)
def test_cells_of_code_keep_the_rules(code, rule):
    assert_none((place for place, *cell in code if NO_CELL[rule](*cell)), rule)


def test_every_notebook_is_run(pytestconfig):
    assert_none(build.stale(), "run `make refresh`")
    pages = [path.name for path in ROOT.glob("*.ipynb")]
    assert_none(sorted(set(pages) - set(pytestconfig.getini("testpaths"))), "add it to testpaths")


def test_chapters_have_the_same_shape(chapters):
    offences = []
    for name, notebook in chapters.items():
        text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
        headings = re.findall(r"^## (.+?)(?:: .+)?\s*$", text, re.MULTILINE)
        if [heading for heading in headings if heading in REQUIRED] != REQUIRED:
            offences.append(f"{name}: {headings}")
        opening = OPENING.fullmatch(notebook.cells[0].source)
        if not opening or len(opening[1].split()) > MOST_WORDS_OF_A_LEAD:
            offences.append(f"{name}: needs a title and a lead of {MOST_WORDS_OF_A_LEAD} words")
        for box in ("finding", "goals"):
            if text.count(f":::{{div}}\n:class: {box}\n") != 1:
                offences.append(f"{name}: needs one box of {box}")
        metadata = notebook.metadata
        if metadata.get("kernelspec") != KERNEL or "widgets" in metadata:
            offences.append(f"{name}: run `make refresh`")
        if "version" in metadata.get("language_info", {}):
            offences.append(f"{name}: run `make refresh`")
    assert_none(offences, f"every chapter has {REQUIRED}")


def open_lines(chapter):
    """How many lines of code stand open in a chapter, but for exercises and empty ones."""
    cells = [cell for section, cell, _ in chapter.cells if section not in TITLES]
    shown = [c for c in cells if c.cell_type == "code" and "source" not in course.closed(c)]
    return sum(bool(line.strip()) for cell in shown for line in cell.source.splitlines())


def test_chapters_are_made_for_readers():
    museum = (ROOT / "bug-museum.ipynb").read_text(encoding="utf-8")
    offences = []
    for chapter in course.read(ROOT):
        asked = dict(chapter.questions)
        quizzes = [asked.pop(key) for key in list(asked) if key.endswith("-quiz")]
        if len(quizzes) != 1 or quizzes[0] not in {3, 4}:
            offences.append(f"{chapter.file}: needs one quiz, of three or four questions")
        if not asked:
            offences.append(f"{chapter.file}: needs a prediction")
        if f"({chapter.file})" not in museum:
            offences.append(f"{chapter.file}: bug-museum.ipynb does not lead to it")
        if (lines := open_lines(chapter)) > MOST_OPEN_LINES:
            offences.append(f"{chapter.file}: {lines} lines of code stand open")
        shown = [name for cell in chapter.notebook.cells[:9] for name, _ in cell.widgets]
        kinds = [cell.cell_type for cell in chapter.notebook.cells]
        if len(shown) < 2 or shown[1] != "Guess":
            offences.append(f"{chapter.file}: needs a picture, then a guess")
        elif kinds.index("markdown", 1) < 3:
            offences.append(f"{chapter.file}: has text between the question and the picture")
        for section, cell, text in chapter.cells:
            if cell.cell_type != "code":
                continue
            if max(map(len, text.splitlines()), default=0) > MOST_COLUMNS:
                offences.append(f"{chapter.file}, {cell.id}: more than {MOST_COLUMNS} columns")
            solved = re.search(r"^def \w+_solution\(", text, re.MULTILINE)
            if section == "Exercises" and solved and "answer" not in cell.tags:
                offences.append(f"{chapter.file}, {cell.id}: a solution, without the tag `answer`")
    assert_none(offences)


# Whether a widget in a state may be set so; as `fits` in widget_host.js says it of an address.
MAY_BE = """(function(state, trait, value) {
  var bound = widget.bounds[trait], check = (widget.shared || {})[trait];
  if (widget.shared === false || check === false || !(bound || check)) return false;
  var isInside = !bound || bound.indexOf && bound.indexOf(value) >= 0
    || value >= bound.least && value <= bound.most && !(bound.whole && value % 1);
  return Boolean(isInside && (!check || check(value, state)));
})(dukpy.state, dukpy.trait, dukpy.value)"""


def cannot_play(setting, slots):
    """Return why a page with these widgets, {name in its address: (name, state)}, is not set so."""
    slot, trait, text = re.fullmatch(r"([a-z0-9-]+)\.(\w+)=(.*)", setting).groups()
    if slot not in slots:
        return f"the page has {', '.join(slots)}"
    name, state = slots[slot]
    state = constant_traits(getattr(attnlib.widgets, name)) | state
    try:
        value = unquote_plus(text)
        value = value if isinstance(state.get(trait), str) else json.loads(value)
    except ValueError:
        return f"{trait} needs JSON"
    may_be = engine(name)(MAY_BE, state=state, trait=trait, value=value)
    return "" if may_be else f"{name} takes no such {trait}"


def named_slots(notebook):
    """Return the widgets of a page by their names in its address; the second Plane is plane-2."""
    slots = {}
    for kind, state in (each for cell in notebook.cells for each in cell.widgets):
        name = re.sub(r"(?<=[a-z])[A-Z]", r"-\g<0>", kind).lower()
        number = 1 + sum(other == kind for other, _ in slots.values())
        slots[name if number == 1 else f"{name}-{number}"] = (kind, state)
    return slots


def test_what_a_guess_plays_is_in_its_page():
    offences = []
    for chapter in course.read(ROOT):
        slots = named_slots(chapter.notebook)
        for kind, state in slots.values():
            for setting in filter(None, state["plays"].split("&") if kind == "Guess" else []):
                if why := cannot_play(setting, slots):
                    offences.append(f"{chapter.file}: plays={setting}, but {why}")
    assert_none(offences, "`plays` sets a picture of its own page")


# Contents and citations


def test_the_reference_names_everything_public():
    page = (ROOT / "reference.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^\.\. auto\w+:: attnlib\.(\w+)$", page, re.MULTILINE))
    assert documented == set(attnlib.__all__)
    checkers = set(check.__all__) - {"Checker", "Verdict"}
    assert checkers == set(re.findall(r"`(\w+)`", page.partition("## The checkers")[2]))


def prose(notebook):
    """Return the running text: no goals, heading, formula, code, citation or address."""
    text = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    box = r"^:::\{div\}\n:class: goals$.*?^:::$"
    text = re.sub(rf"{box}|^#.*?$|^\$\$$.*?^\$\$.*?$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"(\{term\}`[^`]*`)|(?:\{[\w:]+\})?`[^`]*`|\[[^]]*\]\([^)]*\)", r"\1", text)


# British spellings of words that the course uses or may use; "-isation" comes with its verb.
BRITISH = re.compile(
    r"\b(?:learnt|spelt|whilst|judgement|pyjamas|aluminium|tyres?|cheques?|practis(?:e[ds]?|ing)"
    r"|licen[c]e[ds]?|(?:of|de)fence|grey\w*|(?:cent|theat|met|lit|fib)re(?:s|d)?|centring"
    r"|programmes?|catalogues?|analys(?:ed?|ing)|paralys(?:ed?|ing)"
    r"|(?:un)?(?:colour|neighbour|behaviour|favour|honour|flavour|harbour|labour|rumour|humour)\w*"
    r"|(?:label|model|travel|cancel|signal|level|channel|fuel)l(?:ed|ing)"
    r"|(?:initial|normal|organ|optim|general|real|recogn|summar|visual|minim|maxim|token|vector|quant"
    r"|regular|memor|special|factor|standard|character)is(?:e[ds]?|ing|ation\w*))\b",
    re.IGNORECASE,
)
SPELLED_ON_PURPOSE = {
    "test_house.py",  # above
    "search.js",  # a search for the British spelling finds the American one,
    "test_search.py",  # as a test shows
    "onnx.csv",  # names of operators
    "THIRD-PARTY.txt",  # as its authors wrote it
}


def test_the_spelling_is_american():
    ends = (".py", ".js", ".css", ".toml", ".md", ".txt", ".csv", ".ipynb")
    offenses = [
        f"{name}:{number}: {found[0]}"
        for name, text in texts()
        if name.endswith(ends) and Path(name).name not in SPELLED_ON_PURPOSE
        for number, line in enumerate(text.split("\n"), 1)
        for found in BRITISH.finditer(line)
    ]
    assert_none(offenses, "write these words as Americans do")


# A term that is also an everyday word: what it looks like as a term.
AS_A_TERM = {"mean": r"(?:a|the)\s+means?", "rank": r"ranks?(?!\s+correlation)"}


def looked_up():
    """Return the notebooks behind the chapters as {file name: notebook}, in their order."""
    files = re.findall(r"- file: (\S+)", (ROOT / "_toc.yml").read_text(encoding="utf-8"))
    paths = (ROOT / f"{file}.ipynb" for file in files if "/" not in file)
    return {path.name: nbformat.read(path, as_version=4) for path in paths if path.is_file()}


def test_each_term_is_linked_from_its_first_use(chapters):
    glossary = (ROOT / "glossary.md").read_text(encoding="utf-8").partition(":::{glossary}")[2]
    terms = re.findall(r"^(?![:#])\S.*$", glossary, re.MULTILINE)
    pages = chapters | looked_up()
    proses = [*map(prose, pages.values())]
    book = "\n".join(proses)
    ends = [*itertools.accumulate(len(text) + 1 for text in proses)]
    unlinked = re.sub(r"\{term\}`[^`]*`", lambda role: " " * len(role[0]), book)
    offences = []
    for term in terms:
        words = AS_A_TERM.get(term, re.escape(term).replace(r"\ ", r"\s+") + "(?:e?s)?")
        used = re.search(rf"(?<![\w-]){words}(?![\w-])", unlinked, re.IGNORECASE)
        role = rf"\{{term\}}`(?:[^`]*<)?{re.escape(term)}>?`"
        linked = re.search(role, book, re.IGNORECASE)
        if not linked:
            offences.append(f"{term}: no chapter and no page to look things up in links to it")
        elif used and used.start() < linked.start():
            around = " ".join(book[max(0, used.start() - 60) : used.end() + 40].split())
            file = [*pages][bisect.bisect(ends, used.start())]
            offences.append(f"{file}: {term}: used before its link, in ...{around}...")
    assert_none(offences, "link a term as {term}`...` where the chapters use it first")


def test_citations_and_references_match():
    cited = {
        key.strip()
        for name, text in texts()
        if name.endswith((".md", ".ipynb"))
        for keys in re.findall(r"\{cite(?::\w+)?\}`([^`]+)`", text)
        for key in keys.split(",")
    }
    bibliography = (ROOT / "references.bib").read_text(encoding="utf-8")
    known = set(re.findall(r"^@\w+\{([^,\s]+)", bibliography, re.MULTILINE))
    assert_none(sorted(cited - known), "cited, but not in references.bib")
    assert_none(sorted(known - cited), "in references.bib, but cited nowhere")


# Versions


def listed(name):
    """Yield (package, version, hashes) of a list of pins, where versions differ by platform."""
    lines = (ROOT / name).read_text(encoding="utf-8").replace("\\\n", " ")
    for line in lines.splitlines():
        requirement = line.split("#")[0].strip()
        if requirement:
            match = re.match(r"([a-z0-9-]+)==([\w.]+)( ; [^-]+)?(?= |$)", requirement)
            assert match, f"not pinned: {requirement}"
            yield match[1], match[2], re.findall(r"--hash=sha256:([0-9a-f]{64})", requirement)


def pinned(name="requirements.txt"):
    """Return {package: set of versions} of a list of pins."""
    versions = {}
    for package, version, _ in listed(name):
        versions.setdefault(package, set()).add(version)
    return versions


def test_the_lists_of_packages_are_whole():
    # Torch's one version is several files, for CPU or CUDA, with other hashes.
    locks = ["requirements.lock", "requirements-book.lock"]
    bare = [name for lock in locks for name, _, hashes in listed(lock) if not hashes]
    assert_none(bare, "make lock")
    whole, book = pinned(), pinned("requirements-book.lock")
    assert pinned("requirements.lock") | {"torch": {"2.13.0"}} == whole
    assert book.items() <= whole.items(), "make lock"
    assert not {"torch", "transformers", "jupyterlab", "matplotlib", "playwright"} & set(book)
    for name in ("requirements.txt", *locks):
        assert not re.findall(r"://|--\w*index|--find-links", (ROOT / name).read_text())


def declared():
    """Return {package: requirements} of all that pyproject.toml names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = {}
    for extra in [project["dependencies"], *project["optional-dependencies"].values()]:
        for requirement in map(Requirement, extra):
            needed.setdefault(requirement.name, []).append(requirement)
    return needed


def test_the_pins_are_those_of_pyproject():
    # Of torch, anything looser than one version, or a build of its own index, brings gigabytes of
    # CUDA or nothing at all.
    assert [str(requirement) for requirement in declared()["torch"]] == ["torch==2.13.0"]
    offences = [
        str(requirement)
        for name, requirements in declared().items()
        for requirement in requirements
        if not any(map(requirement.specifier.contains, pinned().get(name, [])))
    ]
    assert_none(offences, "run `make lock`")


# What uses a package that no file imports: a file, and the words in it that do.
CALLED = {
    "brotli": ("_ext/fonts.py", 'flavor = "woff2"'),
    "deptry": ("tests/test_house.py", '"-m", "deptry"'),
    "fontpkg-source-serif-4": ("_ext/pages/typeface.py", 'PACKAGE = "fontpkg-source-serif-4"'),
    "furo": ("_config.yml", "html_theme: furo"),
    "jupyterlab": ("Makefile", "-m jupyterlab"),
    "jupyterlab-myst": ("tests/site/test_jupyterlab.py", "jupyterlab-myst"),
    "nbval": ("Makefile", "--nbval"),
    "pytest-rerunfailures": ("tests/conftest.py", "pytest.mark.flaky"),
    "pytest-timeout": ("pyproject.toml", "timeout = 600"),
    "pytest-xdist": ("Makefile", "-n 2"),
    "ruff": ("Makefile", "-m ruff"),
    "setuptools": ("pyproject.toml", "setuptools.build_meta"),
    "sphinx-mathjax-offline": ("_ext/math/stylesheet.py", 'distribution("sphinx-mathjax-offline")'),
    "uv": ("Makefile", "-m uv"),
}


def test_what_is_imported_is_declared_and_what_is_declared_is_used():
    """A package that another one happens to bring may be gone with its next version."""
    command = [sys.executable, "-m", "deptry", ".", "--no-ansi"]
    command += ["--per-rule-ignores", f"DEP002={'|'.join(CALLED)}"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    texts = {file: (ROOT / file).read_text(encoding="utf-8") for file, _ in CALLED.values()}
    uncalled = [name for name, (file, words) in CALLED.items() if words not in texts[file]]
    assert_none([*uncalled, *(set(CALLED) - set(declared()))], "remove it from CALLED")


def test_the_licenses_are_listed():
    """Of the packages of the lock, as installed; the site has a copy (html_extra_path)."""
    listed = licenses.LIST.read_text(encoding="utf-8").splitlines()
    assert_none(difflib.unified_diff(listed, licenses.whole().splitlines(), n=0), "`make licenses`")


def test_the_packages_agree_with_each_other():
    # What `pip check` looks at, a hundred times faster.
    command = [sys.executable, "-m", "uv", "pip", "check", "--python", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# Commands and words


@functools.cache
def texts():
    """Return (name, text) of every file of the checkout that is text."""
    found = []
    for folder, inner, files in os.walk(ROOT):
        # In place, or all of .venv would be walked through.
        inner[:] = sorted({name for name in inner if not name.endswith(".egg-info")} - NOT_OURS)
        for path in (Path(folder, file) for file in sorted(set(files) - NOT_OURS)):
            try:
                found.append((path.relative_to(ROOT).as_posix(), path.read_text("utf-8")))
            except UnicodeDecodeError:
                continue  # a picture or a font
    return found


def test_no_machine_paths_and_nothing_announced():
    assert_none(
        f"{name}:{number}: ...{line[max(0, found.start() - 50) : found.end() + 50]}..."
        for name, text in texts()
        for number, line in enumerate(text.splitlines(), 1)
        if (found := NOWHERE.search(line))
    )


PLAIN_NUMBER = re.compile(r"\bchapters?(?:\s|\\n|~|&nbsp;)+\d+\b(?!, page)", re.IGNORECASE)


def test_scripts_and_styles_have_short_lines():
    """Biome leaves long templates and comments: break them at 100 columns."""
    assert_none(
        f"{name}:{number}"
        for name, text in texts()
        if name.startswith(("_ext/", "attnlib/", "tests/")) and name.endswith((".js", ".css"))
        for number, line in enumerate(text.splitlines(), 1)
        if len(line) > 100
    )


def test_chapters_have_their_numbers_in_links_alone():
    """Those `make refresh` renews. "chapter 16, page 547" is said of another book."""
    found = ((name, PLAIN_NUMBER.search(course.NUMBER.sub("", text))) for name, text in texts())
    offences = [f"{name}: {plain[0]}" for name, plain in found if plain]
    assert_none(offences, "name a chapter by its number in a link alone")


def commands():
    """Return the targets of the Makefile that have a line of help."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z]+):[^=\n]*## \S", makefile, re.MULTILINE))


def test_pages_name_commands_that_exist():
    """In `code`, or at the start of a line."""
    for page in ("README.md", "CONTRIBUTING.md"):
        text = (ROOT / page).read_text("utf-8")
        named = set(re.findall(r"(?:`|^\s*)make ([a-z]+)", text, re.MULTILINE))
        assert {"book", "test"} & named and named <= commands(), page
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert [hook["entry"] for repo in hooks["repos"] for hook in repo["hooks"]] == ["make lint"]


# The workflow that publishes


def steps(job, key):
    return [step[key] for step in job["steps"] if key in step]


def test_the_workflow_publishes_main_alone_and_only_what_passed():
    text = (ROOT / ".github" / "workflows" / "publish.yml").read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    assert workflow[True] == {"push": {"branches": ["main"]}, "pull_request": None}  # YAML's `on`
    book, publish = workflow["jobs"]["book"], workflow["jobs"]["publish"]
    runs = steps(book, "run")
    assert {"make book", "make test"} <= set(runs) <= {f"make {name}" for name in commands()}
    upload = next(step for step in book["steps"] if "upload-artifact" in step.get("uses", ""))
    assert publish["if"] == upload["if"] == "github.ref == 'refs/heads/main'"
    assert publish["needs"] == "book" and book["steps"][-1] is upload
    assert upload["with"]["path"] == "_build/html"
    # The branch where _ext/downloads has Colab look for a chapter's notebook.
    extension = (ROOT / "_ext" / "downloads" / "page.py").read_text(encoding="utf-8")
    branch = re.search(r'PUBLISHED = "(.+)"', extension)[1]
    assert f"--initial-branch {branch}\n" in " ".join(steps(publish, "run"))
    # What may write runs nothing of the repository: it has no checkout, only the built pages.
    assert workflow["permissions"] == {"contents": "read"}
    assert [name for name, job in workflow["jobs"].items() if "permissions" in job] == ["publish"]
    assert publish["permissions"] == {"contents": "write"}
    uses = [use.partition("@")[0] for use in steps(publish, "uses")]
    assert uses == ["actions/download-artifact"]
    assert not re.search(r"\b(?:make|python|pip)\b", " ".join(steps(publish, "run")))
    # Actions are official and named by their commit.
    action = r"actions/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+"
    uses = re.findall(r"uses: (.+)", text)
    assert_none([use for use in uses if not re.fullmatch(action, use)])
