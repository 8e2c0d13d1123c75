"""_ext/course: adding a chapter touches its notebook and `_toc.yml`."""

import gc
import json
import re
import weakref
from pathlib import Path
from unittest.mock import patch

import nbformat
import pytest
from bs4 import BeautifulSoup
from docutils.parsers.rst import DirectiveError
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from sphinx.errors import ExtensionError

from _ext.course import chapters as course
from _ext.course import contents
from tests.conftest import ROOT
from tests.helpers import raises, sphinx_build
from tools.refresh import KERNEL

TOC = """\
format: jb-book
root: index
parts:
  - caption: I. The idea
    chapters:
      - file: chapters/01-rows
  - caption: To look up
    chapters:
      - file: solutions
      - file: teaching
"""
README = "# A book\n\n<!-- chapters -->\n<!-- end of chapters -->\n\nThe end.\n"


LEAD = ":::{div}\n:class: lead\n\nHow much is a row?\n:::"


def notebook(title, *, exercises=("Sum a row",), cells=(), word="row", **stored):
    """Return a small chapter."""
    tasks = "\n\n".join(f"### {name}\n\nDo it." for name in exercises)
    known = {"click": "Rows sum to 1.", "lead": "where it goes on"}
    known |= {"reading": 5, "practice": 15, "needs": "a pencil", "map": ["tokens"]}
    return new_notebook(
        metadata={
            "attention_by_hand": known | stored,
            "kernelspec": KERNEL,
            "language_info": {"name": "python", "pygments_lexer": "ipython3"},
        },
        cells=[
            new_markdown_cell(f"# {title}\n\n{LEAD}"),
            *cells,
            new_code_cell(f'Predict("How much?", 1, key="{word}-guess")'),
            new_markdown_cell(f"## Exercises\n\n{tasks}\n\n## Sources\n\nNone."),
        ],
    )


@pytest.fixture
def book(tmp_path):
    """Return the root of a book with one chapter."""
    for name, text in {
        "_toc.yml": TOC,
        "README.md": README,
        "index.md": "# A book\n\nHours: {hours}`reading` and {hours}`practice`.\n\n"
        ":::{chapters} begin\n:::\n\n:::{chapters} cards\n:::\n\n"
        "## The rest\n\n:::{chapters} progress\n:::\n",
        "teaching.md": "# Teaching\n\n:::{chapters} plan\n:::\n",
        "solutions.md": "# Solutions\n\n:::{chapters} exercises\n:::\n",
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "chapters").mkdir()
    nbformat.write(notebook("Rows"), tmp_path / "chapters" / "01-rows.ipynb")
    return tmp_path


def add_chapter(book):
    """Add a chapter as an author does: its notebook, and a line in `_toc.yml`."""
    code = [new_markdown_cell("## The code\n\n### Sum it\n\nAs an exercise, too.")]
    tasks = ("Sum it", "Turn it")
    second = notebook("Columns", exercises=tasks, cells=code, word="column", practice=190)
    nbformat.write(second, book / "chapters" / "02-columns.ipynb")
    line = "      - file: chapters/01-rows\n"
    toc = TOC.replace(line, line + line.replace("01-rows", "02-columns"))
    (book / "_toc.yml").write_text(toc, encoding="utf-8")


def refresh(book):
    """Write what is stored, as `make refresh` does, and return which files changed."""
    stale = course.stale(book)
    for path, text in stale.items():
        path.write_text(text, encoding="utf-8")
    return sorted(path.name for path in stale)


def living_objects_alone():
    """Hide proxies: sphinx_external_toc asks each object its class, and a dead one has none."""
    every = gc.get_objects

    def objects():
        return [one for one in every() if type(one) not in weakref.ProxyTypes]

    return patch.object(gc, "get_objects", objects)


def build(book):
    """Build the book with what makes its pages here and nothing else, and return them as text."""
    extensions = ["myst_nb", "sphinx_external_toc", "_ext.course.contents", "_ext.course.frame"]
    extensions += ["_ext.widgets.page"]
    settings = {
        "extensions": extensions,
        "myst_enable_extensions": ["attrs_inline", "colon_fence"],
        "myst_heading_anchors": 3,
        "exclude_patterns": ["README.md", "_build"],
    }
    out = book / "_build" / "html"
    with living_objects_alone():
        sphinx_build(book, out, settings)
    return {path.stem: path.read_text(encoding="utf-8") for path in out.rglob("*.html")}


def test_a_chapter_is_added_by_its_notebook_and_a_line_in_the_contents(book):
    refresh(book)
    add_chapter(book)
    assert refresh(book) == ["01-rows.ipynb", "02-columns.ipynb", "README.md"]
    after = build(book)

    assert "2. [Columns](chapters/02-columns.ipynb)" in (book / "README.md").read_text("utf-8")
    first, second = (nbformat.read(chapter.path, 4) for chapter in course.read(book))
    assert first.cells[-1].source.endswith("Next: [](02-columns.ipynb), where it goes on.")
    assert second.cells[0].source.startswith("# 2. Columns\n")
    page = BeautifulSoup(after["02-columns"], "html.parser")
    facts = page.select_one("h1 + .facts")
    assert facts.get_text() == "5 min to read, 190 min to practice; a pencil"
    assert facts.find_next_sibling("div")["class"][0] == "lead"
    assert 'rel="next" title="2. Columns"' in after["01-rows"]  # the contents

    page = BeautifulSoup(after["index"], "html.parser")
    assert page.p.get_text() == "Hours: 1 and 3."
    way_in = page.select_one(".begin a")
    assert way_in.get_text(" ", strip=True) == "Begin 1. Rows"
    assert way_in["href"] == "chapters/01-rows.html"
    (card,) = (box.find_parent("section") for box in page.select(".part"))
    assert card.h2.get_text().startswith("I. The idea") and card.find_parent("section").h1
    assert card.svg and course.PROMISES["I. The idea"] in card.get_text()
    times = [time.get_text() for time in card.select(".minutes")]
    assert times == ["10 min reading + 3 h 25 min practice", "5 + 15 min", "5 + 190 min"]
    listed = {link.get_text(): link["href"] for link in card.select("li a")}
    assert listed == {
        "1. Rows": "chapters/01-rows.html",
        "2. Columns": "chapters/02-columns.html",
    }
    teaching = BeautifulSoup(after["teaching"], "html.parser")
    plan = [row.get_text(" ", strip=True) for row in teaching("tr")]
    # Together they would take 15 minutes more than a week has.
    assert plan[1:] == [
        "1: 20 min 1 Sum a row Rows sum to 1. 5 + 15",
        "2: 3 h 15 min 2 Sum it Rows sum to 1. 5 + 190",
    ]
    said = teaching.select_one("section p").get_text()
    assert said.startswith("2 weeks: 10 min of reading and 3 h 25 min of practice.")
    assert said.endswith(" The longest week takes 3 h 15 min.")
    progress = [json.loads(slot["data-state"]) for slot in page.select("[data-widget=Progress]")]
    counted = {"1. Rows": {"row-guess": 1}, "2. Columns": {"column-guess": 1}}
    assert progress == [{"chapters": counted, "form": form} for form in ("bar", "keep")]
    assert page.find(id="the-rest").h2 and not page.select(".part #the-rest")
    links = BeautifulSoup(after["solutions"], "html.parser").select("#solutions li a")
    assert [link.get_text() for link in links] == ["Sum a row", "Sum it", "Turn it"]
    for link in links:
        target, _, anchor = link["href"].partition("#")
        exercise = BeautifulSoup(after[Path(target).stem], "html.parser").find(id=anchor)
        assert exercise.h3.get_text().startswith(link.get_text())
        assert exercise.find_parent("section").h2.get_text().startswith("Exercises")


LINKS = """\
[Chapter 7](chapters/01-rows.ipynb#sum-a-row), [chapter 7](chapters/02-columns.ipynb)'s sum, and
[chapters 7](chapters/01-rows.ipynb) to [7](chapters/02-columns.ipynb);
[7 rows](chapters/01-rows.ipynb), [lesson 7](of.md), [](chapters/02-columns.ipynb), `x[7](02)`
"""
RENEWED = """\
[Chapter 2](chapters/01-rows.ipynb#sum-a-row), [chapter 1](chapters/02-columns.ipynb)'s sum, and
[chapters 2](chapters/01-rows.ipynb) to [1](chapters/02-columns.ipynb);
[7 rows](chapters/01-rows.ipynb), [lesson 7](of.md), [](chapters/02-columns.ipynb), `x[7](02)`
"""


def test_links_to_chapters_follow_their_numbers(book):
    """In the text of chapters, of other notebooks and of pages, wherever the contents move them."""
    add_chapter(book)
    lines = (book / "_toc.yml").read_text("utf-8").splitlines()
    first = next(number for number, line in enumerate(lines) if "01-rows" in line)
    lines[first : first + 2] = lines[first : first + 2][::-1]
    (book / "_toc.yml").write_text("\n".join(lines), "utf-8")
    cells = [new_markdown_cell(LINKS.replace("chapters/", "")), new_code_cell(LINKS)]
    nbformat.write(notebook("Rows", cells=cells), book / "chapters" / "01-rows.ipynb")
    here = [new_markdown_cell(LINKS)]
    nbformat.write(new_notebook(cells=here), book / "museum.ipynb")
    (book / "faq.md").write_text(LINKS, "utf-8")
    files = ["01-rows.ipynb", "02-columns.ipynb", "README.md", "faq.md", "museum.ipynb"]
    assert refresh(book) == files and refresh(book) == []
    _, text, code, *_ = nbformat.read(book / "chapters" / "01-rows.ipynb", 4).cells
    assert text.source == RENEWED.replace("chapters/", "") and code.source == LINKS
    museum = nbformat.read(book / "museum.ipynb", 4).cells[0].source
    assert museum == (book / "faq.md").read_text("utf-8") == RENEWED


def add_part(book, name):
    """Begin a part before the second chapter."""
    toc = (book / "_toc.yml").read_text("utf-8")
    new_part = f'  - caption: "{name}"\n    chapters:\n      - file: chapters/02'
    (book / "_toc.yml").write_text(toc.replace("      - file: chapters/02", new_part), "utf-8")


def test_a_part_has_its_name_in_the_readme_and_its_card_on_the_start_page(book):
    add_chapter(book)
    add_part(book, "II. The model")
    refresh(book)
    readme = (book / "README.md").read_text("utf-8")
    first = "**I. The idea**\n\n1. [Rows](chapters/01-rows.ipynb)\n\n"
    assert first + "**II. The model**\n\n2. [Columns](" in readme
    assert readme.endswith("<!-- end of chapters -->\n\nThe end.\n")
    cards = course.cards(course.read(book))
    assert re.findall(r"^## .+|^- \[\]\(\S+\)", cards, re.MULTILINE) == [
        "## I. The idea",
        "- [](chapters/01-rows.ipynb)",
        "## II. The model",
        "- [](chapters/02-columns.ipynb)",
    ]


def test_what_authors_leave_out_is_named(book):
    add_chapter(book)
    add_part(book, "The sky")
    message = "_ext/course/chapters.py: PROMISES needs the part 'The sky' of _toc.yml"
    with raises(course.ChapterError, message):
        course.cards(course.read(book))
    (book / "faq.md").write_text("See [chapter 4](chapters/04-sums.ipynb).", "utf-8")
    message = "faq.md: it links to 04-sums.ipynb, which _toc.yml does not list"
    with raises(course.ChapterError, message):
        course.stale(book)
    (book / "README.md").write_text("# A book\n", encoding="utf-8")
    message = "README.md needs <!-- chapters --> and <!-- end of chapters -->"
    with raises(course.ChapterError, message):
        course.stale(book)
    directive = contents.Chapters.__new__(contents.Chapters)
    directive.arguments = ["all"]
    with pytest.raises(DirectiveError) as refused:
        directive.run()
    needed = "needed one of begin, cards, progress, plan, short-plan, exercises; got all"
    assert refused.value.msg == needed


def test_this_book_is_whole():
    assert [str(path) for path in course.stale(ROOT)] == [], "run `make refresh`"
    listed = {chapter.path for chapter in course.read(ROOT)}
    assert listed == {*(ROOT / "chapters").glob("*.ipynb")}
    parts = list(course.parts_of(course.read()))
    assert parts == list(course.PROMISES)
    pictures = sorted(path.stem for path in (ROOT / "_ext" / "course" / "parts").iterdir())
    assert pictures == sorted(course.picture_of(part).stem for part in parts)


def test_what_is_stored_is_stable_and_a_chapter_that_goes_is_forgotten(book):
    add_chapter(book)
    refresh(book)
    assert refresh(book) == []
    (book / "_toc.yml").write_text(TOC, encoding="utf-8")
    assert refresh(book) == ["01-rows.ipynb", "README.md"]
    assert "Next:" not in (book / "chapters" / "01-rows.ipynb").read_text("utf-8")


def test_predictions_and_the_questions_of_the_quiz_are_counted(book):
    quizzes = book / "attnlib" / "widgets" / "quiz" / "questions"
    quizzes.mkdir(parents=True)
    (quizzes / "rows.toml").write_text("[[questions]]\n" * 3, encoding="utf-8")
    cells = [new_code_cell('Quiz.for_chapter("rows")')]
    nbformat.write(notebook("Rows", cells=cells), book / "chapters" / "01-rows.ipynb")
    (chapter,) = course.read(book)
    assert chapter.questions == {"row-guess": 1, "rows-quiz": 3}


def tagged(source, *tags, **metadata):
    """Return a cell of code with tags."""
    return new_code_cell(source, metadata={"tags": list(tags), **metadata})


def test_what_a_tag_closes_on_the_page_is_closed_in_jupyter(book):
    tags = ["hide-input", "hide-cell", "answer"]
    cells = [tagged("a = 1", tag) for tag in tags] + [tagged("a", jupyter={"source_hidden": True})]
    nbformat.write(notebook("Rows", cells=cells), book / "chapters" / "01-rows.ipynb")
    refresh(book)
    (chapter,) = course.read(book)
    both = {"outputs_hidden": True, "source_hidden": True}
    found = [cell.metadata.get("jupyter") for cell in chapter.notebook.cells[1:5]]
    assert found == [{"source_hidden": True}, both, both, None]


NEEDED = "'click', 'reading', 'practice', 'needs', 'map'"
WHOLE = "'reading' needs whole minutes; got '5'"


def without_exercises(spoilt):
    spoilt.cells[-1].source = "## Sources"


def with_a_quiz(spoilt):
    spoilt.cells[1].source = 'Quiz.for_chapter("none")'


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda n: n.cells.pop(0), "the first cell needs a title, # 1. ..."),
        (lambda n: n.metadata.clear(), f"the metadata attention_by_hand need {NEEDED}"),
        (lambda n: n.metadata.attention_by_hand.update(reading="5"), WHOLE),
        (without_exercises, "the metadata attention_by_hand need 'exercise'"),
        (lambda n: n.metadata.attention_by_hand.update(exercise="No"), "it has no exercise 'No'"),
        (with_a_quiz, "its quiz needs attnlib/widgets/quiz/questions/none.toml"),
        (lambda n: n.cells.pop(), "the last cell needs to be text"),
    ],
)
def test_what_a_chapter_lacks_is_named_in_one_line(book, change, message):
    spoilt = notebook("Rows")
    change(spoilt)
    nbformat.write(spoilt, book / "chapters" / "01-rows.ipynb")
    with raises(course.ChapterError, f"chapters/01-rows.ipynb: {message}"):
        chapters = course.read(book)
        course.stale(book), course.term_plan(chapters), course.progress(chapters)
    assert issubclass(course.ChapterError, ExtensionError)  # with which a build ends in one line


def test_a_week_takes_what_readers_took_and_no_more_than_it_may(book):
    """Chapters of 20, 195, 5 + 5, 5 and 250 minutes, in this order; a week has 200."""

    class Timed:
        def __init__(self, reading, practice):
            self.reading, self.practice = reading, practice

    chapters = [Timed(*each) for each in ((5, 15), (5, 190), (1, 4), (3, 2), (120, 130))]
    planned = [[chapters.index(each) for each in week] for week in course.weeks(chapters)]
    assert planned == [[0], [1, 2], [3], [4]]


def test_a_short_term_has_what_its_chapters_need():
    chapters = course.read()
    chosen = [c for c in chapters if Path(c.file).stem in course.SHORT]
    assert len(chosen) == len(course.SHORT)
    known = {c.title for c in chosen}
    for chapter in chosen:
        needed = set(re.findall("“(.+?)”(?! by)", chapter.needs)) & {c.title for c in chapters}
        assert needed <= known, chapter.title
    assert len(course.weeks(chosen)) <= len(course.weeks(chapters)) / 2
