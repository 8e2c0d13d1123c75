"""What notation.md says of the symbols: it alone explains them and gives their shapes."""

import re
from html import escape

from sphinx.errors import ExtensionError

from _ext import ROOT
from _ext.symbols.table import ATLAS, name_of
from _ext.symbols.tex import as_html, plain

NOTATION = ROOT / "notation.md"
ROW = re.compile(r"^\|(.*)\|$", re.MULTILINE)


def notation(text):
    """What the tables of notation.md say of each symbol.

    A row may have several. Then `;` stands between what is said of each, and each has a shape;
    or the row says one thing of all. Of each there is the TeX, the meaning, the shape and the names
    in code, which a table may lack, all as Markdown, and the set of chapters and pages in its row.
    """
    said = []
    for table in re.findall(r"^\| symbol .*?^:::", text, flags=re.MULTILINE | re.DOTALL):
        lines = ROW.findall(table)
        head, _, *rows = ([cell.strip() for cell in line.split("|")] for line in lines)
        for line, row in zip(lines[2:], rows, strict=True):
            cells = dict(zip(head, row, strict=True))
            symbols = [plain(tex) for tex in re.findall(r"\$([^$]+)\$", cells["symbol"])]
            columns = (
                shared(cells["meaning"].split("; "), cells["meaning"], symbols),
                shared(re.findall(r"\$[^$]+\$", cells.get("shape", "")), "", symbols),
                shared(re.findall(r"`[^`]+`", cells.get("in code", "")), "", symbols),
            )
            pages = {name_of(file) for file in re.findall(r"\]\((chapters/[^)#]+)", line)}
            pages |= {ATLAS} if "parity atlas" in line else set()
            said += zip(symbols, *columns, [pages] * len(symbols), strict=True)
    return said


def shared(parts, whole, symbols):
    """One part for each symbol; where there are not as many, all have the same."""
    if len(parts) == len(symbols):
        return parts
    return [parts[0] if len(parts) == 1 else whole] * len(symbols)


def explained(symbols, text):
    """The meaning and the shape of each symbol, from notation.md, as HTML.

    Where several rows have its letters, the row is the one that names a page of the symbol, or
    else the one that names none. A symbol that then has no row, or several, stops the build.
    """
    found = {}
    for each in symbols:
        rows = [row for row in notation(text) if row[0] == each.tex]
        if len(rows) > 1:
            rows = [row for row in rows if row[4] & each.only] or [
                row for row in rows if not row[4]
            ]
        if len(rows) != 1:
            raise ExtensionError(f"notation.md has {len(rows)} rows for ${each.tex}$, {each.name}")
        _, meaning, shape, *_ = rows[0]
        like = "as " if shape and "(" not in shape else ""
        found[each] = sentence(meaning), like + sentence(shape)
    return found


def sentence(markdown):
    """The first thing that a cell of notation.md says, as HTML, without where to read more.

    What it is in code stands in the table.
    """
    text = re.sub(r", in code `\w+`|(, )?\{eq\}`[^`]*`", "", markdown.split("; ")[0])
    chapter = r"\[chapter \d+\]\([^)]*\)"
    text = re.sub(rf"^(?:in|from) {chapter}(?: on)?[,:] |, {chapter}$", "", text.strip())
    parts = re.split(r"\$([^$]*)\$|`([^`]*)`", text)
    html = [escape(part, quote=False) for part in parts[0::3]]
    for i, (tex, code) in enumerate(zip(parts[1::3], parts[2::3], strict=True)):
        html[i] += as_html(tex) if tex else f"<code>{escape(code)}</code>"
    return "".join(html)
