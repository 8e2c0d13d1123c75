"""Write THIRD-PARTY.txt: what the site is made with, under which licenses; `make licenses`.

The site has a copy of the file, for the licenses ask that their notices go with the work.
"""

import re
import textwrap
from importlib.metadata import PackageNotFoundError, distribution, metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "THIRD-PARTY.txt"

HEAD = """\
The work of others: their licenses, as their packages name them. Written by `make licenses`.

The course's own code is under the MIT License (LICENSE), its text and figures are under CC BY 4.0
(LICENSE-CONTENT). Nothing below is part of the repository. The built site has parts of the first
list, whose licenses stand in full at the end: all allow that, and ask for these notices.
"""

# What the built site has of others: its maker, its license, what it is there.
IN_THE_SITE = [
    ("Furo", "furo", "MIT", "layout: styles, script and templates"),
    ("Sphinx", "Sphinx", "BSD-2-Clause", "search, styles and templates"),
    ("sphinx-basic-ng", "sphinx-basic-ng", "MIT", "skeleton styles and templates"),
    ("MyST-NB", "myst-nb", "BSD-3-Clause", "styles of the cells"),
    ("Pygments", "Pygments", "BSD-2-Clause", "styles of the code"),
    ("MathJax", None, "Apache-2.0", "formulas and glyphs of its fonts, which are subset"),
    ("Source Serif 4", "fontpkg-source-serif-4", "OFL-1.1", "the face of the text, a part of it"),
    ("normalize.css", None, "MIT", "within Furo's styles"),
    ("gumshoejs", None, "MIT", "within Furo's script"),
    ("Feather", None, "MIT", "icons, within Furo's templates"),
    ("Tabler Icons", None, "MIT", "icons, within Furo's templates"),
    ("Pyodide", None, "MPL-2.0", "Python in the page, where the site has it"),
    ("CPython", None, "PSF-2.0", "within Pyodide"),
    ("NumPy", None, "BSD-3-Clause", "for Pyodide"),
    ("all-MiniLM-L6-v2", None, "Apache-2.0", "the encoder's weights, where the site has them"),
]
# What has no file of its own: the copyright lines of the sources, under the common texts.
COPYRIGHT = {
    "MathJax": "Copyright (c) 2009-2022 The MathJax Consortium",
    "normalize.css": "Copyright (c) Nicolas Gallagher and Jonathan Neal",
    "gumshoejs": "Copyright (c) 2019 Chris Ferdinandi, patched by Pradyun Gedam",
    "Feather": "Copyright (c) 2013-2023 Cole Bemis",
    "Tabler Icons": "Copyright (c) 2020 Paweł Kuna",
    "Pyodide": """\
Copyright (C) 2019-2026 Pyodide contributors and Mozilla. The license: https://mozilla.org/MPL/2.0/
The source: https://github.com/pyodide/pyodide""",
    "CPython": """\
Copyright (c) 2001-2025 Python Software Foundation; All Rights Reserved
The license: https://docs.python.org/3.13/license.html""",
    "NumPy": """\
Copyright (c) 2005-2025, NumPy Developers. Its file in the site holds the license in full, and those
of what it bundles.""",
    "all-MiniLM-L6-v2": """\
By the authors of sentence-transformers; in the site its weights are rounded and cut into pieces.
The source: https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2""",
}
APACHE = "requests"  # a package that has the text of the Apache License
# Packages that are needed on other systems only, or whose metadata do not say.
NAMED_ELSEWHERE = {
    "appnope": "BSD-2-Clause",
    "axe-playwright-python": "MIT",
    "colorama": "BSD-3-Clause",
    "httpx2-jsfetch": "BSD-3-Clause",
    "pywinpty": "MIT",
    "resvg-py": "MIT",
    "torch": "BSD-3-Clause, and those of what its build bundles",  # which differs by build
}


def packages():
    """Return the packages that requirements.txt pins."""
    pins = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    return sorted(set(re.findall(r"^([a-z0-9-]+)==", pins, re.M)))


def license_of(package):
    """Return the license that the metadata of a package name: the expression, or the old fields."""
    if package in NAMED_ELSEWHERE:
        return NAMED_ELSEWHERE[package]
    try:
        known = metadata(package)
    except PackageNotFoundError:
        raise SystemExit(f"{package} is not installed here: name it in NAMED_ELSEWHERE") from None
    classifiers = known.get_all("Classifier", [])
    classes = [name.split(" :: ")[-1] for name in classifiers if "License ::" in name]
    line = (known.get("License") or "").strip()
    short = line if "\n" not in line and len(line) < 60 and line != "UNKNOWN" else ""
    found = known.get("License-Expression") or short or ", ".join(classes)
    if not found:
        raise SystemExit(f"{package} names no license: name it in NAMED_ELSEWHERE")
    return found


def text(package):
    """Return the license file of an installed package."""
    files = distribution(package).files
    name = next(file for file in files if re.fullmatch(r"LICEN[CS]E(\.\w+)?", file.name))
    return name.locate().read_text(encoding="utf-8").strip()


def whole():
    """Return the text of THIRD-PARTY.txt."""
    parts = [HEAD, "In the built site\n-----------------\n"]
    parts += [f"{name:<18}{kind:<14}{use}" for name, _, kind, use in IN_THE_SITE]
    parts += ["\n", "To build, run and test\n----------------------\n"]
    parts += [f"{package:<28}{license_of(package)}" for package in packages()]
    for name, package, kind, _ in IN_THE_SITE:
        parts.append(f"\n\n{name} ({kind})\n{'-' * (len(name) + len(kind) + 3)}\n")
        parts.append(text(package) if package else COPYRIGHT[name])
    mit = text("furo").partition("Permission is")
    parts.append("\n\nThe MIT License, for all that name it\n" + "-" * 37 + "\n")
    parts.append(mit[1] + mit[2])
    parts.append("\n\n" + textwrap.dedent(text(APACHE)))
    return "\n".join(line.rstrip() for line in "\n".join(parts).splitlines()) + "\n"


if __name__ == "__main__":
    LIST.write_text(whole(), encoding="utf-8")
