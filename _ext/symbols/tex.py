"""The letters of a symbol: TeX without colors, as one line, and as HTML."""

import re
import unicodedata

from sphinx.errors import ExtensionError

GREEK = {"gamma": "γ", "beta": "β", "mu": "μ", "sigma": "σ", "varepsilon": "ε", "eta": "η"}
GREEK |= {"ell": "ℓ"}
COLOR = re.compile(r"\\textcolor\{#\w+\}\{((?:[^{}]|\{[^{}]*\})*)\}")
# What as_html knows, in this order; letters in <up> are no symbols.
HTML = {
    r"\\text\{([\w ]+)\}": r"<up \1>",
    r"\\tilde\{(\w)\}": "\\1\u0303",
    r"\\hat\{(\w)\}": "\\1\u0302",
    r"\^\\top": "<sup><up T></sup>",
    r"\\sqrt\{(\w+)\}": r"√\1",
    "''": "″",
    "'": "′",
    r"_\{?(<up [\w ]+>|\w+)\}?": r"<sub>\1</sub>",
    r"\^\{?(\([^)]*\)|\d)\}?": r"<sup>\1</sup>",
}


def plain(tex):
    """TeX without its colors."""
    while COLOR.search(tex):
        tex = COLOR.sub(r"\1", tex)
    return tex


def signature(tex):
    """The letters of a symbol in one line, as symbols.js reads them off a drawn formula."""
    tex = re.sub(r"\\(\w+)", lambda match: GREEK.get(match[1], match[0]), tex)
    tex = tex.replace(r"\tilde", "~").replace(r"\hat", "^").replace("''", "^″").replace("'", "^′")
    return unicodedata.normalize("NFKC", re.sub(r"\\text|[{}]|\(k\)", "", tex))


def as_html(tex):
    """A few letters of TeX as HTML for a line of text; if there is more in it, an error."""
    text = re.sub(r"\\(\w+)", lambda match: GREEK.get(match[1], match[0]), plain(tex))
    for theirs, ours in HTML.items():
        text = re.sub(theirs, ours, text)
    if re.search(r"[\\{}^_$]", text):
        raise ExtensionError(f"a symbol needs TeX of letters alone; got ${tex}$")
    text = re.sub(r"<.*?>|[^\W\d_][^\W\d_\u0302\u0303]*[\u0302\u0303]?", leaning, text)
    return re.sub("<up (.*?)>", r"\1", text)


def leaning(match):
    """Letters lean; what is a tag, or a word of the language, stands."""
    return match[0] if match[0].startswith("<") else f"<i>{match[0]}</i>"
