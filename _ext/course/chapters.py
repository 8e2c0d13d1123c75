"""What a chapter is, read from its notebook, for all modules that name chapters.

`_toc.yml` says which notebooks are chapters, in which order and in which part. The rest stands in
the notebook: its title, its exercises, the questions that its widgets ask, the time that it takes.
Its metadata keep, under "attention_by_hand", only what nothing else says:

    "lead": how the chapter before goes on after "Next: ..., "; the first chapter has none;
    "reading", "practice": how many minutes it takes a newcomer to read it, and to answer it;
    "needs": what is needed before, in a few words: 'after "Masks"';
    "map": the parts of the map of the whole model (`map.py`) that are lit at its head;
    "click": what must click in it, for the term plan;
    "exercise": the one for the class, if it is not the first.

The start page, the teaching page and the solutions are made from this when the book is built, by
`contents.py`, and the head of each chapter by `frame.py`. README's list is stored, and so are a
notebook's own number, its way to the next, and the numbers in links to chapters on all pages:
`make refresh` ends with this file, which writes them again.
"""

import json
import re
import sys
import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import nbformat
from sphinx.errors import ExtensionError

from _ext import ROOT, notebook

# What a reader can do after each part of `_toc.yml`. A part's picture is in the folder `parts`,
# in a file with its name: the-idea.svg.
PROMISES = {
    "I. The idea": "You learn what attention is for, compute it for a short sentence on paper, and "
    "write it in a few lines of Python.",
    "II. The model": "You build a small model that writes, work out by hand which words it writes, "
    "and learn what each of its parts is for.",
    "III. Learning": "You see how a model finds its own numbers by correcting its mistakes, "
    "compute one correction by hand, and look at what a small model has learned.",
    "IV. Inside a model": "You use two trained models: one writes, and the other searches by "
    "meaning. You measure how good they are, and see where they fail.",
    "V. The present": "You work out what attention costs, and learn what today's models do "
    "differently and why.",
}

KINDS = ("reading", "practice")  # of minutes
WEEK = 200  # minutes that a week of a term plan may take
# The chapters of a short term: each has in it what the next ones need.
SHORT = {
    "01-why-attention",
    "02-queries-keys-values",
    "03-chai-piyo-by-hand",
    "05-masks",
    "06-many-heads",
    "08-the-encoder-layer",
    "09-a-gpt-on-two-pages",
    "10-encoder-decoder",
    "14-what-it-costs",
}

# What a tag closes of a cell, here and in Jupyter.
CLOSES = {"hide-input": {"source"}, "hide-output": {"outputs"}}
CLOSES |= {tag: {"source", "outputs"} for tag in ("hide-cell", "answer")}

TITLE = re.compile(r"^# (?:\d+\. )?(.+)$", re.MULTILINE)
NEXT = re.compile(r"\n*^Next: .+$\n*", re.MULTILINE)
NUMBER = re.compile(  # in a link to a chapter: [chapter 4](04-scaling.ipynb#anchor)
    r"(?<=\[)((?:chapters? )?)\d+(?=\]\((?:[^()\s]*/)?(\d[^()\s/#]*\.ipynb)(?:#[^()\s]*)?\))",
    re.IGNORECASE,
)
LIST = re.compile(r"(?<=<!-- chapters -->\n).*(?=<!-- end of chapters -->)", re.DOTALL)


class ChapterError(ExtensionError):
    """A chapter lacks what the book needs to know of it."""


@dataclass(frozen=True)
class Chapter:
    """A notebook that is a chapter: where it stands in the book, and what it says of itself."""

    root: Path
    file: str  # below the root
    part: str
    number: int

    @property
    def page(self):
        return self.file.removesuffix(".ipynb")

    @property
    def path(self):
        return self.root / self.file

    @cached_property
    def notebook(self):
        return notebook.read(self.path)

    @cached_property
    def title(self):
        """Its heading, without the number."""
        found = TITLE.search(self.notebook.cells[0].source)
        if not found:
            raise ChapterError(f"{self.file}: the first cell needs a title, # {self.number}. ...")
        return found[1].strip()

    @property
    def heading(self):
        """Its title, with the number."""
        return f"{self.number}. {self.title}"

    @property
    def needed(self):
        """What its metadata must say under "attention_by_hand"."""
        always = ["click", "reading", "practice", "needs", "map"]
        return always + ["lead"] * (self.number > 1)

    def stored(self, key, default=None):
        """What its metadata say there; the error names at once all that they lack."""
        kept = self.notebook.metadata.get("attention_by_hand", {})
        value = kept.get(key, default)
        if value is None:
            lacking = [name for name in self.needed if name not in kept] or [key]
            names = ", ".join(map(repr, lacking))
            raise ChapterError(f"{self.file}: the metadata attention_by_hand need {names}")
        return value

    @cached_property
    def cells(self):
        """Its cells as (section, cell, text), a cell of two sections as two."""
        found, section = [], ""
        for cell in self.notebook.cells:
            parts = [cell.source]
            if cell.cell_type == "markdown":
                parts = re.split(r"^(?=## )", cell.source, flags=re.MULTILINE)
            for text in parts:
                if cell.cell_type == "markdown" and text.startswith("## "):
                    section = text.splitlines()[0].removeprefix("## ").strip()
                found.append((section, cell, text))
        return found

    @cached_property
    def exercises(self):
        """The headings of its exercises, each with its anchor: {heading: anchor}."""
        anchors, found = set(), {}
        for section, cell, text in self.cells:
            headings = re.findall(r"^(#{1,3}) (.+?)\s*$", text, re.MULTILINE)
            for level, heading in headings if cell.cell_type == "markdown" else ():
                anchor, n = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-"), 1
                while anchor in anchors:  # as MyST does
                    anchor, n = f"{anchor}-{n}", n + 1
                anchors.add(anchor)
                if section == "Exercises" and level == "###":
                    found[heading] = anchor
        return found

    def link_to(self, exercise):
        """A link to one of its exercises."""
        if exercise not in self.exercises:
            raise ChapterError(f"{self.file}: it has no exercise {exercise!r}")
        return f"[{exercise}]({self.file}#{self.exercises[exercise]})"

    @cached_property
    def questions(self):
        """How many questions are kept under which key: its predictions, then its quiz."""
        code = "\n".join(self.notebook.code)
        found = dict.fromkeys(re.findall(r'\bkey="([^"]+)"', code), 1)
        for name in re.findall(r'Quiz\.for_chapter\("([^"]+)"\)', code):
            path = self.root / "attnlib" / "widgets" / "quiz" / "questions" / f"{name}.toml"
            if not path.is_file():
                raise ChapterError(f"{self.file}: its quiz needs {path.relative_to(self.root)}")
            questions = tomllib.loads(path.read_text(encoding="utf-8"))["questions"]
            found[f"{name}-quiz"] = len(questions)
        return found

    @property
    def reading(self):
        """How many minutes it takes a newcomer to read it."""
        return self.whole("reading")

    @property
    def practice(self):
        """How many minutes its predictions, its quiz and its exercises take."""
        return self.whole("practice")

    @property
    def needs(self):
        """What a reader needs before, in a few words."""
        return self.stored("needs")

    def whole(self, key):
        """Return a number of minutes that the metadata say."""
        minutes = self.stored(key)
        if type(minutes) is not int or minutes < 1:
            raise ChapterError(f"{self.file}: {key!r} needs whole minutes; got {minutes!r}")
        return minutes


def closed(cell):
    """What the tags of a cell of code close: its source, its outputs, both or nothing."""
    return set().union(*(CLOSES.get(tag, set()) for tag in cell.metadata.get("tags", [])))


def read(root=ROOT):
    """The chapters of the book at `root`, in the order of its `_toc.yml`."""
    toc, part, found = (root / "_toc.yml").read_text(encoding="utf-8"), "", []
    for key, value in re.findall(r"^ *- (caption|file): (.+?) *$", toc, re.MULTILINE):
        if key == "caption":
            part = value.strip("\"'")
        elif value.startswith("chapters/"):
            found.append(Chapter(Path(root), f"{value}.ipynb", part, len(found) + 1))
    return found


# --- what is made of the chapters when the book is built, as MyST ---------------------------------


def parts_of(chapters):
    """The chapters by parts: {name: chapters}."""
    names = dict.fromkeys(chapter.part for chapter in chapters)
    return {name: [c for c in chapters if c.part == name] for name in names}


def hours(minutes):
    """A time as a person says it: 2 h 35 min."""
    spoken = (f"{minutes // 60} h" * (minutes >= 60), f"{minutes % 60} min" * (minutes % 60 > 0))
    return " ".join(filter(None, spoken))


def total(chapters, kind):
    """How many whole hours all `reading` or all `practice` takes."""
    return max(1, round(sum(getattr(chapter, kind) for chapter in chapters) / 60))


def begin(chapters):
    """The start page's way in. `book.js` makes it lead on to where the reader was."""
    first = chapters[0]
    return f":::{{container}} begin\n[**Begin** *{first.heading}*]({first.file})\n:::\n"


def cards(chapters):
    """The start page's parts: what each promises, what it takes, how far the reader is."""
    return "\n".join(card(part, listed) for part, listed in parts_of(chapters).items())


def card(part, chapters):
    """One of them, a section with its chapters."""
    if part not in PROMISES:
        raise ChapterError(f"_ext/course/chapters.py: PROMISES needs the part {part!r} of _toc.yml")
    picture = picture_of(part).read_text(encoding="utf-8")
    reading = hours(sum(chapter.reading for chapter in chapters))
    practice = hours(sum(chapter.practice for chapter in chapters))
    lines = [f"- []({c.file}) [{c.reading} + {c.practice} min]{{.minutes}}" for c in chapters]
    blocks = [
        f"## {part}\n\n::::{{container}} part",
        f"```{{raw}} html\n{picture}```",
        PROMISES[part],
        f"[{reading} reading + {practice} practice]{{.minutes}}",
        progress(chapters, form="bar"),
        "\n".join(lines),
        "::::\n",
    ]
    return "\n\n".join(blocks)


def picture_of(part):
    name = re.sub(r"^[IVX]+\. ", "", part).lower().replace(" ", "-")
    return ROOT / "_ext" / "course" / "parts" / f"{name}.svg"


def weeks(chapters):
    """The chapters in their order, as many a week as its minutes allow, at least one."""
    found = []
    for chapter in chapters:
        if not found or minutes([*found[-1], chapter]) > WEEK:
            found.append([])
        found[-1].append(chapter)
    return found


def minutes(chapters):
    """How long it takes to read them and to practice."""
    return sum(chapter.reading + chapter.practice for chapter in chapters)


def term_plan(chapters):
    """The teaching page's plan of a term: how long it takes, and what is done in each week."""
    planned, lines = weeks(chapters), []
    for week, listed in enumerate(planned, start=1):
        for c in listed:
            exercise = c.link_to(c.stored("exercise", next(iter(c.exercises), None)))
            spent = f"{week}: {hours(minutes(listed))}" if c is listed[0] else f"{week}"
            lines.append(
                f"| {spent} | [{c.number}]({c.file}) | {exercise} | {c.stored('click')} "
                f"| {c.reading} + {c.practice} |"
            )
    reading, practice = (hours(sum(getattr(c, kind) for c in chapters)) for kind in KINDS)
    said = (
        f"{len(planned)} weeks: {reading} of reading and {practice} of practice. The longest week "
        f"takes {hours(max(map(minutes, planned)))}."
    )
    head = ["| week | chapter | exercise | what must click | minutes |", "|---|---|---|---|---|"]
    table = [":::{table}", ":widths: 19 11 19 35 16", "", *head, *lines, ":::", ""]
    return "\n".join([said, "", *table])


def short_plan(chapters):
    """The plan of a short term."""
    return term_plan([chapter for chapter in chapters if Path(chapter.file).stem in SHORT])


def exercises(chapters):
    """The list of the solutions: every exercise by its chapter."""
    blocks = []
    for chapter in chapters:
        links = "\n".join(f"- {chapter.link_to(exercise)}" for exercise in chapter.exercises)
        blocks.append(f"**Chapter {chapter.number}**\n\n{links}")
    return "\n\n".join(blocks) + "\n"


def progress(chapters, form="keep"):
    """The widget that counts what a reader has answered right, here to save or erase it."""
    counted = {c.heading: c.questions for c in chapters if c.questions}
    return f":::{{widget}} Progress\n{json.dumps({'chapters': counted, 'form': form})}\n:::\n"


# --- what is stored, made again -------------------------------------------------------------------


def readme(text, chapters):
    """README with the list of the chapters between its two marks."""
    blocks = []
    for part, listed in parts_of(chapters).items():
        rows = "\n".join(f"{c.number}. [{c.title}]({c.file})" for c in listed)
        blocks.append(f"**{part}**\n\n{rows}")
    if not LIST.search(text):
        raise ChapterError("README.md needs <!-- chapters --> and <!-- end of chapters -->")
    return LIST.sub(lambda _: "\n" + "\n\n".join(blocks) + "\n\n", text)


def numbered(text, path, chapters):
    """The text of the file at `path` with today's numbers in its links to chapters."""
    numbers = {Path(chapter.file).name: chapter.number for chapter in chapters}

    def renew(link):
        if link[2] not in numbers:
            raise ChapterError(f"{path.name}: it links to {link[2]}, which _toc.yml does not list")
        return f"{link[1]}{numbers[link[2]]}"

    return NUMBER.sub(renew, text)


def numbered_cells(path, chapters):
    """The notebook at `path` with such texts, as nbformat has it."""
    written = nbformat.read(path, as_version=4)
    for cell in written.cells:
        if cell.cell_type == "markdown":
            cell.source = numbered(cell.source, path, chapters)
    return written


def complete(chapter, following, chapters):
    """The text of a chapter's notebook, with its number and the way to the next."""
    for key in chapter.needed:
        chapter.stored(key)
    written = numbered_cells(chapter.path, chapters)
    first, last = written.cells[0], written.cells[-1]
    if last.cell_type != "markdown":
        raise ChapterError(f"{chapter.file}: the last cell needs to be text")
    first.source = TITLE.sub(lambda _: f"# {chapter.heading}", first.source, count=1)
    for cell in written.cells:
        cell.metadata.pop("jupyter", None)
        if parts := closed(cell):  # on the page, and so there
            cell.metadata["jupyter"] = {f"{part}_hidden": True for part in sorted(parts)}
    last.source = NEXT.sub("", last.source).rstrip()
    if following:
        name = Path(following.file).name
        last.source += f"\n\nNext: []({name}), {following.stored('lead')}."
    return nbformat.writes(written) + "\n"


def stale(root=ROOT):
    """The files that do not say what the chapters say: {path: the text that they should have}."""
    chapters = read(root)
    pages = {path: path.read_text(encoding="utf-8") for path in sorted(Path(root).glob("*.md"))}
    path = Path(root, "README.md")
    pages[path] = readme(pages[path], chapters)
    wanted = {path: numbered(text, path, chapters) for path, text in pages.items()}
    for path in sorted(Path(root).glob("*.ipynb")):
        wanted[path] = nbformat.writes(numbered_cells(path, chapters)) + "\n"
    for chapter, following in zip(chapters, [*chapters[1:], None], strict=True):
        wanted[chapter.path] = complete(chapter, following, chapters)
    return {p: text for p, text in wanted.items() if p.read_text(encoding="utf-8") != text}


def main():
    try:
        for path, text in stale().items():
            path.write_text(text, encoding="utf-8")
            print(f"{path.relative_to(ROOT)}: made again from the chapters", flush=True)
    except (ChapterError, OSError) as error:
        return f"Stopped: {error}"
    return 0


if __name__ == "__main__":
    sys.exit(main())
