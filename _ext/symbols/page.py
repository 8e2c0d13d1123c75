"""Linked reading: the symbols of the course, and where each one stands on a page.

Pages do not get heavier. Everything goes into one file, `_static/symbols.js`, which `book.js`
fetches as soon as someone moves a pointer or presses a key, and which finds the letters in the
drawn formulas and the names in the code by itself. An equation's TeX is found by its MathML, so
that the file also fits a page of an earlier build.
"""

import json
import re
import tomllib
from html import unescape
from pathlib import Path

from _ext.assets import minify
from _ext.files import write
from _ext.math.formulas import used_formulas
from _ext.symbols.notation import NOTATION, explained
from _ext.symbols.table import NO_ROWS, ROWS_IN_CODE, SYMBOLS
from _ext.symbols.tex import as_html, plain, signature

HERE = Path(__file__).parent
NUMPY = tomllib.loads((HERE / "equations.toml").read_text(encoding="utf-8"))


def digest(drawn):
    """A short name of a typeset formula, from its MathML: by it the page finds the TeX.

    It is FNV-1a of the elements and the letters, which the page knows as well.
    """
    mathml = re.search(r"<mjx-assistive-mml>(.*)</mjx-assistive-mml>", drawn, re.DOTALL)[1]
    letters = re.sub(r"\s+", "", unescape(re.sub(r"<[^>]*>", "", mathml)))
    number = 0x811C9DC5
    for sign in " ".join([*re.findall(r"<(\w+)", mathml), letters]):
        number = (number ^ ord(sign)) * 0x01000193 % 2**32
    return f"{number:x}"


def equations(formulas):
    """The TeX of each displayed formula, without its colors, by the digest of its MathML."""
    return {
        digest(drawn): unwrapped(plain(tex).strip())
        for (tex, display), drawn in sorted(formulas.items())
        if display
    }


def unwrapped(tex):
    """TeX without the `split` around it, unless lines of its own end in it."""
    inner = re.fullmatch(r"\\begin\{split\}\s*(.*?)\s*\\end\{split\}", tex, re.DOTALL)
    if not inner:
        return tex
    rest, environment = inner[1], r"\\begin\{(\w+)\}((?!\\begin).)*?\\end\{\1\}"
    while re.search(environment, rest, re.DOTALL):
        rest = re.sub(environment, "", rest, flags=re.DOTALL)
    return tex if r"\\" in rest else inner[1]


def table(text):
    """The symbols as the page wants them."""
    said = explained(SYMBOLS, text)
    return [
        {
            "name": each.name, "form": signature(each.tex), "role": each.role,
            "code": each.code.split(), "row": each.row, "parts": ", ".join(each.parts),
            "only": sorted(each.only), "onlyCode": sorted(each.only_code or each.only),
            "html": as_html(each.tex), "means": said[each][0], "shape": said[each][1],
        }
        for each in SYMBOLS
    ]  # fmt: skip


def script(formulas):
    """The text of `symbols.js`: the program, and all that it knows."""
    known = {
        "symbols": table(NOTATION.read_text(encoding="utf-8")),
        "noRows": NO_ROWS, "rowsInCode": ROWS_IN_CODE, "numpy": NUMPY,
        "tex": equations(formulas),
        "style": minify((HERE / "symbols.css").read_text(encoding="utf-8"), ".css"),
    }  # fmt: skip
    program = minify((HERE / "symbols.js").read_text(encoding="utf-8"), ".js")
    data = json.dumps(known, ensure_ascii=False, separators=(",", ":"))
    return program.replace("KNOWN", data, 1)


def write_script(app, builder):
    """Before the first page is written: all formulas are typeset."""
    write(Path(app.outdir, "_static", "symbols.js"), script(used_formulas(app)))


def setup(app):
    app.connect("write-started", write_script, priority=600)  # after `mathematics`
