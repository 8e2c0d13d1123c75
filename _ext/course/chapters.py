"""What a chapter is, read from its notebook; and what follows from it, for whoever names chapters.

`_toc.yml` says which notebooks are chapters, in which order and in which part. The rest stands in
the notebook: its title, its exercises, the questions that its widgets ask, the time that it takes.
Its metadata keep, under "attention_by_hand", only what nothing else says:

    "lead": how the chapter before goes on after "Next: ..., "; the first chapter has none;
    "week", "click": its week in the term plan, and what must click in it;
    "exercise": the one for the class, if it is not the first.

The start page, the teaching page and the solutions are made from this when the book is built, by
`contents.py`. README's list is stored, and so are a notebook's own number, its time and its way to
the next: `make refresh` ends with this file, which writes them again.
"""

import json
import re
import sys
import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import nbformat

from _ext import ROOT, notebook

# How long things take, in seconds. Reading: words, 150 a minute; a figure, a formula of its own and
# a line of code are looked at; a widget is moved. Practice is what the reader answers: a prediction
# is worked out on paper, a question of the quiz and an exercise take a while. Newcomers took about
# twice what the first edition said, at 200 words a minute, 3 s a line, 7 minutes an exercise.
WORD, FIGURE, FORMULA, LINE, WIDGET = 0.4, 40, 30, 6, 180
PREDICTION, QUESTION, EXERCISE = 300, 60, 600

# What a reader can do after each part of `_toc.yml`. A part's picture is in the folder `parts`,
# in a file with its name: the-idea.svg.
PROMISES = {
    "I. The idea": "Say what attention does, compute it for a short sentence on paper, "
    "and write it in a few lines of NumPy.",
    "II. The layer": "Build a whole layer of a Transformer, let one half read and the other write, "
    "and say what each part is for.",
    "III. Learning": "Say how a model comes to ask for the right thing, take a gradient back "
    "through attention by hand, and read what two heads of a small GPT do together.",
    "IV. In the world": "Count what attention costs, say what today's models changed and why, and "
    "run a published model in your own code.",
}

# What a tag closes of a cell, here and in Jupyter. What is closed takes no time.
CLOSES = {"hide-input": {"source"}, "hide-output": {"outputs"}}
CLOSES |= {tag: {"source", "outputs"} for tag in ("hide-cell", "answer")}

TITLE = re.compile(r"^# (?:\d+\. )?(.+)$", re.MULTILINE)
TIME = re.compile(r"(?<=\*\*Time:\*\* ).+$", re.MULTILINE)
NEXT = re.compile(r"\n*^Next: .+$\n*", re.MULTILINE)
DIRECTIVE = re.compile(r"^(:{3,})\{(\w+)\}.*?^\1 *$", re.MULTILINE | re.DOTALL)
FORMULAS = re.compile(r"^\$\$.*?^\$\$.*?$", re.MULTILINE | re.DOTALL)
NO_TEXT = re.compile(r"\]\([^)]*\)|\{[\w:]+\}|^:::.*$|^:\w+:.*$", re.MULTILINE)
LIST = re.compile(r"(?<=<!-- chapters -->\n).*(?=<!-- end of chapters -->)", re.DOTALL)


class ChapterError(ValueError):
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
        """The name of its page."""
        return self.file.removesuffix(".ipynb")

    @property
    def path(self):
        """Where its notebook is."""
        return self.root / self.file

    @cached_property
    def notebook(self):
        """Its cells and metadata."""
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
        return ["week", "click", "lead"] if self.number > 1 else ["week", "click"]

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

    @cached_property
    def reading(self):
        """What is read in it, as (cell, text) like `cells`.

        All but its exercises and the way to the next, which is no word of its author's.
        """
        return [
            (cell, NEXT.sub("\n", text) if cell.cell_type == "markdown" else text)
            for section, cell, text in self.cells
            if section != "Exercises"
        ]

    @cached_property
    def minutes(self):
        """How long its reading takes, by fives: text, figures, code, and widgets to move."""
        code = self.notebook.code
        imports = re.findall(r"^from attnlib\.widgets import (.+)$", "\n".join(code), re.MULTILINE)
        widgets = {name.strip() for line in imports for name in line.split(",")}
        seconds = 0
        for cell, text in self.reading:
            if cell.cell_type == "markdown":
                seconds += time_of_text(text)
            else:
                seconds += time_of_code(cell, widgets, is_first=cell.source == code[0])
        return by_fives(seconds)

    @property
    def practice(self):
        """How many minutes its predictions, its quiz and its exercises take, by fives."""
        seconds = EXERCISE * len(self.exercises)
        for key, n in self.questions.items():
            seconds += QUESTION * n if key.endswith("-quiz") else PREDICTION
        return by_fives(seconds)

    @property
    def words(self):
        """How many words of running text it has, but for exercises and what is closed."""
        return sum(len(words(text)) for cell, text in self.reading if cell.cell_type == "markdown")

    @property
    def lines(self):
        """How many lines of code stand open in it, but for exercises."""
        return sum(open_lines(cell) for cell, _ in self.reading if cell.cell_type == "code")


def shown(text):
    """A cell of text without the boxes that are closed."""

    def seen(box):
        head = box[0].partition("\n\n")[0]
        return "" if box[2] in {"dropdown", "answer"} or ":class: dropdown" in head else box[0]

    return DIRECTIVE.sub(seen, text)


def words(text):
    """The words that are read in a cell of text: a formula within a line is one."""
    text = FORMULAS.sub("", shown(text))
    return re.findall(r"\w\S*", NO_TEXT.sub("", re.sub(r"\$[^$]+\$", " x ", text)))


def closed(cell):
    """What the tags of a cell of code close: its source, its outputs, both or nothing."""
    return set().union(*(CLOSES.get(tag, set()) for tag in cell.metadata.get("tags", [])))


def open_lines(cell):
    """How many lines of code a cell shows, empty ones not counted."""
    lines = [] if "source" in closed(cell) else cell.source.splitlines()
    return sum(bool(line.strip()) for line in lines)


def time_of_text(text):
    """The seconds that a cell of text takes; what is closed takes none."""
    return WORD * len(words(text)) + FORMULA * len(FORMULAS.findall(shown(text)))


def time_of_code(cell, widgets, is_first):
    """The seconds that a cell of code takes with what it shows; what is closed takes none."""
    called = set(re.findall(r"\b([A-Z]\w+)\(", cell.source)) & widgets
    if called & {"Predict", "Quiz"}:
        return 0  # practice
    seconds = 0 if is_first else LINE * open_lines(cell)
    if "outputs" not in closed(cell):
        seconds += FIGURE * ("figure" in cell.metadata.get("mystnb", {}))
        seconds += WIDGET * bool(called and any("data" in output for output in cell.outputs))
    return seconds


def by_fives(seconds):
    """Minutes that nobody takes for exact."""
    return max(5, 5 * round(seconds / 300))


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
    minutes = {"reading": "minutes", "practice": "practice"}[kind]
    return max(1, round(sum(getattr(chapter, minutes) for chapter in chapters) / 60))


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
    reading, practice = (hours(sum(minutes)) for minutes in zip(*map(times, chapters), strict=True))
    lines = [f"- []({c.file}) [{c.minutes} + {c.practice} min]{{.minutes}}" for c in chapters]
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
    """Where the picture of a part is."""
    name = re.sub(r"^[IVX]+\. ", "", part).lower().replace(" ", "-")
    return ROOT / "_ext" / "course" / "parts" / f"{name}.svg"


def times(chapter):
    """The minutes of its reading, and of its practice."""
    return chapter.minutes, chapter.practice


def term_plan(chapters):
    """The teaching page's table."""
    lines = []
    for c in chapters:
        exercise = c.link_to(c.stored("exercise", next(iter(c.exercises), None)))
        lines.append(
            f"| {c.stored('week')} | [{c.number}]({c.file}) | {exercise} | {c.stored('click')} "
            f"| {c.minutes} + {c.practice} |"
        )
    head = ["| week | chapter | exercise | what must click | minutes |", "|---|---|---|---|---|"]
    return "\n".join([":::{table}", ":widths: 10 13 22 42 13", "", *head, *lines, ":::", ""])


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


def complete(chapter, following):
    """The text of a chapter's notebook, with its number, its time and the way to the next."""
    for key in chapter.needed:
        chapter.stored(key)
    written = nbformat.read(chapter.path, as_version=4)
    first, last = written.cells[0], written.cells[-1]
    if not TIME.search(first.source):
        raise ChapterError(f"{chapter.file}: the first cell needs **Time:** in its box")
    if last.cell_type != "markdown":
        raise ChapterError(f"{chapter.file}: the last cell needs to be text")
    first.source = TITLE.sub(lambda _: f"# {chapter.heading}", first.source, count=1)
    time = f"about {chapter.minutes} minutes, practice {chapter.practice} minutes."
    first.source = TIME.sub(time, first.source)
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
    path = Path(root, "README.md")
    wanted = {path: readme(path.read_text(encoding="utf-8"), chapters)}
    for chapter, following in zip(chapters, [*chapters[1:], None], strict=True):
        wanted[chapter.path] = complete(chapter, following)
    return {p: text for p, text in wanted.items() if p.read_text(encoding="utf-8") != text}


def main():
    """Write what has changed."""
    try:
        for path, text in stale().items():
            path.write_text(text, encoding="utf-8")
            print(f"{path.relative_to(ROOT)}: made again from the chapters", flush=True)
    except (ChapterError, OSError) as error:
        return f"Stopped: {error}"
    return 0


if __name__ == "__main__":
    sys.exit(main())
