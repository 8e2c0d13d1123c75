"""What pages load as it is comes from the rooms into `_static`, without what no reader needs.

Each room keeps such files in its folder `static`. Of ours the comments go, and the white space
that only people need; of Furo's and Sphinx's styles the rules for what no page has, and the
variables that nothing reads: a fifth. A page
waits for each style before it is drawn: it has one of its own and one that all pages share.

What became of a file is kept between builds in `_build/minified.json`, which may be lost at any
time.
"""

import hashlib
import json
import re
import string
from contextlib import suppress
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

import tinycss2
import tree_sitter_javascript
from tree_sitter import Language, Parser

from _ext import ROOT
from _ext.files import clear, digest, write

STATIC = sorted(Path(__file__).parent.glob("*/static"))
# What a page's script imports from the widgets: constants, since it is no module itself.
PROGRESS = ROOT / "attnlib" / "widgets" / "kit" / "progress.js"
IMPORT = re.compile(r'^import \{ (.+) \} from ".*/kit/progress\.js";$', re.MULTILINE)
EXPORT = re.compile(r"^export const (\w+) = (.+?);", re.MULTILINE)
OURS = [file for folder in STATIC for file in folder.glob("*.[cj]s*")]
THEIRS = ["pygments.css", "styles/furo.css"]
SHARED = ["palette.css", "pygments.css", "styles/furo.css", "math.css", "book.css"]
# They begin with what they look for, not with where: in 16 MB of pages that is 10 times as fast.
SHARED_LINK = re.compile(r"/shared[.\w]*\.css(?=\")")
LOADED = re.compile(r"_static/([\w./]+\.css)")
STYLES = ["*.css", "*/*.css", "styles/*.map"]
# The encoder's pieces and Python's own scripts, 50 MB of data, name nothing.
SCRIPTS = ["*.js", "scripts/*.js", "widgets/*.js"]
NAMED = re.compile(rb'\b(?:class|id)="([^"]*)"')
VARIABLE = re.compile(r"--[\w-]+")
READ = re.compile(r"var\(\s*(--[\w-]+)")
NOT_IN_NAMES = bytes({*range(256)} - {*f"{string.ascii_letters}{string.digits}_-".encode()})
SPACES = bytes.maketrans(NOT_IN_NAMES, b" " * len(NOT_IN_NAMES))
JAVASCRIPT = Parser(Language(tree_sitter_javascript.language()))
# Signs beside which no space is needed.
ALONE = frozenset(b"()[]{},;:?=&|")
# Signs after which, and before which, no statement can end, so that a line break says nothing.
GOES_ON = frozenset(b"([{,;:?=&|")
CONTINUES = frozenset(b")]},:?=&|")


def kept_in(app):
    return Path(app.outdir).parent / "minified.json"


def collect(app, config):
    """Before Sphinx looks for them: where such files are, and what became of them."""
    KEPT.load(kept_in(app))
    config.html_static_path += [folder.relative_to(ROOT).as_posix() for folder in STATIC]


def join_styles(app, pagename, templatename, context, doctree):
    """Replace the styles of a page by two: its own, and then the one that all pages share.

    The shared one has the last word, because it also says how widgets look on paper. It is written
    after the last page, when it is known which rules any page needs.
    """
    own = [style.filename for style in context["css_files"] if style.priority == 500]
    if own:
        files = (Path(app.outdir, name).read_text(encoding="utf-8") for name in own)
        name = write_style(app, "page", "".join(minify(text, ".css") for text in files))
        app.add_css_file(name, priority=100)
    app.add_css_file("shared.css", priority=200)
    joined = {*own, *(f"_static/{name}" for name in SHARED)}
    context["css_files"][:] = [s for s in context["css_files"] if s.filename not in joined]


def write_style(app, stem, text):
    """Write a style under a name that changes with its content, and return the name."""
    name = f"{stem}.{digest(text)}.css"
    write(Path(app.outdir, "_static", name), text)
    return name


def finish_files(app, exception):
    """After all pages: leave in the files only what readers need, and join the shared styles."""
    if exception:
        return
    static = Path(app.outdir, "_static")
    for source in OURS:
        text = with_constants(source.read_text(encoding="utf-8"))
        write(static / source.name, minify(text, source.suffix))
    names = names_in(app.outdir)
    styles = (shared_style(static / name, names if name in THEIRS else None) for name in SHARED)
    text = without_unread("".join(styles), variables_in(app.outdir))
    shared, loaded = write_style(app, "shared", text), set()
    for page in Path(app.outdir).rglob("*.html"):
        text = SHARED_LINK.sub(f"/{shared}", page.read_text(encoding="utf-8"))
        write(page, text)
        loaded |= {Path(name).name for name in LOADED.findall(text)}
    for pattern in STYLES:  # all that is joined by now, and those of Sphinx that nothing asks for
        clear(static.glob(pattern), loaded)
    KEPT.save(kept_in(app))


def shared_style(file, names):
    """The text of a style that all pages share, with the rules that need no other names."""
    text = minify(file.read_text(encoding="utf-8"), ".css")
    if names is None:
        return text
    return used_rules(tinycss2.parse_stylesheet(text, skip_whitespace=True), names)


def with_constants(script):
    """Return a script with the values of the constants that it imports, instead of the import."""
    values = dict(EXPORT.findall(PROGRESS.read_text(encoding="utf-8")))

    def declared(match):
        return "".join(f"const {name} = {values[name]};" for name in match[1].split(", "))

    return IMPORT.sub(declared, script)


class Minified:
    """What `minify` returned, by its arguments: loaded before a build and kept after it."""

    def __init__(self):
        self.texts, self.used = {}, set()

    def get(self, source, suffix):
        key = f"{hashlib.sha256(source.encode()).hexdigest()}{suffix}"
        self.used.add(key)
        if key not in self.texts:
            self.texts[key] = minified(source, suffix)
        return self.texts[key]

    def load(self, path):
        with suppress(OSError, ValueError, KeyError):
            stored = json.loads(path.read_text(encoding="utf-8"))
            self.texts |= stored["texts"] if stored["made_by"] == MADE_BY else {}

    def save(self, path):
        texts = {key: self.texts[key] for key in sorted(self.used)}
        write(path, json.dumps({"made_by": MADE_BY, "texts": texts}))


KEPT = Minified()
# A change of this file or of a parser may change what becomes of a text.
PARSERS = ["tinycss2", "tree-sitter", "tree-sitter-javascript"]
MADE_BY = [digest(Path(__file__).read_bytes()), *map(version, PARSERS)]


def minify(source, suffix):
    """Return what `minified` does, from the last build if that had the same text."""
    return KEPT.get(source, suffix)


def minified(source, suffix):
    """Return a script (".js") or a style (".css") without comments and unneeded white space.

    Parsers find the comments, because a string, a template or a regular expression may hold what
    looks like one. A line break stays where it may end a statement.
    """
    if suffix == ".css":
        values = tinycss2.parse_component_value_list(source, skip_comments=True)
        return tinycss2.serialize(collapsed(values))
    code = source.encode()
    program = JAVASCRIPT.parse(code).root_node
    if program.has_error:
        raise ValueError(f"minify needs a script that can be parsed; got {source[:80]!r}")
    kept, end = [b";"], 0
    for token in tokens(program):
        kept += [between(kept[-1][-1], code[end : token.start_byte], token.text[0]), token.text]
        end = token.end_byte
    return b"".join(kept[1:]).decode().lstrip() + "\n"


def between(before, gap, after):
    """Return the white space that a script needs between two tokens, given the bytes beside it."""
    if b"\n" in gap and before not in GOES_ON and after not in CONTINUES:
        return b"\n"
    return b" " if gap and not {before, after} & ALONE else b""


def collapsed(values):
    """Yield the values of a style with a space for white space, none beside a block, "," or ";"."""
    before = None
    for value, after in pairwise([*values, None]):
        if value.type == "whitespace":
            if needs_no_space(before) or needs_no_space(after):
                continue
            value.value = " "
        elif value.type == "function":
            value.arguments = list(collapsed(value.arguments))
        elif value.type.endswith("block"):
            value.content = list(collapsed(value.content))
        before = value
        yield value


def needs_no_space(value):
    """Tell whether white space beside a value of a style, or beside no value, means nothing."""
    return value is None or value.type in {"whitespace", "{} block"} or value in (",", ";")


def tokens(node):
    """Yield the tokens of a syntax tree, comments excepted."""
    if node.type != "comment":
        if not node.children:
            yield node
        for child in node.children:
            yield from tokens(child)


def names_in(folder):
    """Every class and every id of the pages, and every word of the scripts, which may be one."""
    words = set()
    for page in Path(folder).rglob("*.html"):
        words.update(b" ".join(NAMED.findall(page.read_bytes())).split())
    for script in scripts_in(folder):
        words.update(script.read_bytes().translate(SPACES).split())
    return {word.decode() for word in words}


def scripts_in(folder):
    return [file for pattern in SCRIPTS for file in Path(folder, "_static").glob(pattern)]


def variables_in(folder):
    """The variables of CSS that the pages, their own styles and their scripts read."""
    static, found = Path(folder, "_static"), set()
    pages = [page.read_text(encoding="utf-8") for page in Path(folder).rglob("*.html")]
    styles = {name for page in pages for name in LOADED.findall(page)}
    files = (static / name for name in styles if (static / name).is_file())
    for text in [*pages, *(file.read_text(encoding="utf-8") for file in files)]:
        found.update(READ.findall(text))
    for script in scripts_in(folder):
        found.update(VARIABLE.findall(script.read_text(encoding="utf-8")))
    return found


def without_unread(style, read):
    """Return a style without the variables that neither it nor anything else reads."""
    while True:
        known = read | set(READ.findall(style))
        rules = tinycss2.parse_stylesheet(style, skip_whitespace=True)
        shorter = "".join(without_variables(rule, known) for rule in rules)
        if shorter == style:
            return style
        style = shorter


def without_variables(rule, known):
    """Return the text of a rule in which no other variables get a value."""
    if rule.type == "at-rule" and rule.lower_at_keyword in {"media", "supports"}:
        inner = tinycss2.parse_rule_list(rule.content, skip_whitespace=True)
        body = "".join(without_variables(each, known) for each in inner)
    elif rule.type == "qualified-rule" and "--" in tinycss2.serialize(rule.content):
        parts = tinycss2.parse_blocks_contents(rule.content, skip_whitespace=True)
        kept = [part for part in parts if not (is_variable(part) and part.name not in known)]
        if len(kept) == len(parts):
            return rule.serialize()
        body = tinycss2.serialize(kept)
    else:
        return rule.serialize()
    head = f"@{rule.lower_at_keyword}" if rule.type == "at-rule" else ""
    return body and f"{head}{tinycss2.serialize(rule.prelude)}{{{body}}}"


def is_variable(part):
    return part.type == "declaration" and part.name.startswith("--")


def used_rules(rules, names):
    """Return the text of the rules that can apply to an element with these classes and ids."""
    return "".join(used_rule(rule, names) for rule in rules)


def used_rule(rule, names):
    """Return the text of a rule without selectors that apply nowhere; without any, nothing."""
    if rule.type == "at-rule" and rule.lower_at_keyword in {"media", "supports"}:
        head = f"@{rule.lower_at_keyword}{tinycss2.serialize(rule.prelude)}"
        body = used_rules(tinycss2.parse_rule_list(rule.content, skip_whitespace=True), names)
    elif rule.type == "qualified-rule":
        used = (part for part in selectors(rule.prelude) if required_names(part) <= names)
        head, body = ",".join(map(tinycss2.serialize, used)), tinycss2.serialize(rule.content)
    else:
        return rule.serialize()
    return head and body and f"{head}{{{body}}}"


def selectors(prelude):
    """Return the selectors that stand before the braces of a rule, as tokens."""
    found = [[]]
    for token in prelude:
        if token == ",":
            found.append([])
        else:
            found[-1].append(token)
    return found


def required_names(selector):
    """Return the classes and ids that an element needs; those inside `:not()`, say, it does not."""
    return {
        token.value
        for before, token in pairwise([None, *selector])
        if token.type == "hash" or (before == "." and token.type == "ident")
    }


def setup(app):
    app.connect("config-inited", collect)
    app.connect("html-page-context", join_styles, priority=950)  # after theme.py
    app.connect("build-finished", finish_files)
