"""MyST Markdown as plain Markdown, which Jupyter and Colab show as it is meant.

An admonition becomes a quote, one that opens and closes a `<details>`, and every number and
reference is the page's own. What has no plain form, and what MyST would still find in the result,
is an error.
"""

import re

from docutils.parsers.rst.directives.admonitions import Admonition, Note
from docutils.parsers.rst.states import MarkupError
from markdown_it import MarkdownIt
from myst_parser.parsers.directives import parse_directive_text
from sphinx.locale import admonitionlabels

from _ext.content.folding import ANSWER, Answer, Dropdown
from _ext.course.frame import Box

DIRECTIVES = {"admonition": Admonition, "dropdown": Dropdown, "answer": Answer, "div": Box}
DIRECTIVES |= dict.fromkeys(set(admonitionlabels) - {"versionadded"}, Note)  # Note: no title
TITLES = {name: str(label) for name, label in admonitionlabels.items()} | {"answer": ANSWER}
ROLES = {name: ("std", name) for name in ("numref", "ref", "doc", "term")}
ROLES |= {"eq": ("math", "eq"), "cite:p": ("cite", "p"), "cite:t": ("cite", "t")}

# What may look like a role or a reference and be one: code is code whatever stands in it, and a
# formula may run over several lines, which a quote would mark as its own.
INLINE = re.compile(
    r"(?:\{(?P<role>[\w:+-]+)\})?(?P<ticks>`+)(?P<text>.+?)(?<!`)(?P=ticks)(?!`)"
    r"|(?P<math>(?<!\\)\$[^$]+\$)"
    r"|(?<!!)\[(?P<label>[^\[\]]*)\]\((?P<target>(?![a-z]+:)[^()\s]+)\)",
    re.DOTALL,
)
# The kinds of token of what Jupyter and Colab show as it is meant.
PLAIN = set(
    "paragraph heading bullet_list ordered_list list_item blockquote table thead tbody tr th td "
    "inline text text_special softbreak hardbreak code_inline code_block fence hr em strong s link "
    "math_block math_inline math_inline_double".split()
)
BLOCKS = {"fence", "colon_fence", "code_block", "math_block", "math_block_label"}
OURS = re.compile(r"<details>\n<summary>.*</summary>\n|</details>\n?")


class PlainError(ValueError):
    """Something has no plain form; the message says what."""


class Plain:
    """Turns the Markdown of one page's cells into plain Markdown.

    The parser is that of the book's own pages. `resolve(role, text)` is
    what the page shows for a role, and its address or None; `follow(target)` is the title of the
    page to which a link leads, and its address or None.
    """

    def __init__(self, parser, resolve, follow):
        self.parser, self.resolve, self.follow = parser, resolve, follow

    def cell(self, text):
        """The plain form of a cell; a PlainError says what has none, and what MyST is left."""
        plain = self._blocks(text)
        self._check(self.parser.parse(plain, {}))
        return plain

    def _blocks(self, text):
        """The plain form of `text`, which may hold blocks within blocks."""
        lines, parts, done = text.split("\n"), [], 0
        for token in self.parser.parse(text, {}):
            if token.type in BLOCKS:
                start, end = token.map
                if start > done:
                    parts.append(self._inline("\n".join(lines[done:start])))
                block = self._block(token)
                whole = "\n".join(lines[start:end])
                parts.append(whole if block is None else nested(block, lines[start]))
                done = end
        if done < len(lines):
            parts.append(self._inline("\n".join(lines[done:])))
        return "\n".join(parts)

    def _block(self, token):
        """What stands for a block that is not running text; None if it may stay as it is."""
        if token.type == "math_block_label":
            number, _ = self.resolved("eq", token.info)
            return f"$$\n{token.content.strip()}\n\\tag{{{number.strip('()')}}}\n$$"
        directive = re.fullmatch(r"\{([^}]*)\}(.*)", token.info.strip())
        if not directive or token.type == "code_block":
            return None
        name, argument = directive.groups()
        if name not in DIRECTIVES:
            raise PlainError(f"the directive {{{name}}} has no plain form")
        try:
            parsed = parse_directive_text(DIRECTIVES[name], argument.strip(), token.content)
        except MarkupError as error:
            raise PlainError(f"the directive {{{name}}}: {error}") from error
        for warning in parsed.warnings:
            raise PlainError(f"the directive {{{name}}}: {warning.msg}")
        body = self._blocks("\n".join(parsed.body)).strip()
        if name == "div":
            return body
        title = parsed.arguments[0] if parsed.arguments else TITLES[name]
        title = self._inline(title)
        if name in {"dropdown", "answer"} or "dropdown" in parsed.options.get("class", []):
            summary = MarkdownIt().renderInline(title)
            return f"<details>\n<summary>{summary}</summary>\n\n{body}\n\n</details>"
        # Jupyter takes formulas out before it reads the marks of a quote: each on one line.
        body = re.sub(r"\$\$.+?\$\$", lambda match: " ".join(match[0].split()), body, flags=re.S)
        return "\n".join(f"> {line}".rstrip() for line in f"**{title}**\n\n{body}".split("\n"))

    def _inline(self, text):
        return INLINE.sub(self._replacement, text)

    def _replacement(self, match):
        if match["math"]:
            return " ".join(match["math"].split("\n"))
        if match["role"]:
            text, address = self.resolved(match["role"], match["text"])
            return f"[{text}]({address})" if address else text
        if match["target"]:
            title, address = self.follow(match["target"])
            label = self._inline(match["label"]) or title
            return f"[{label}]({address})" if address else label
        return match[0]

    def resolved(self, role, text):
        """What the page shows for a role, and its address or None."""
        if role not in ROLES:
            raise PlainError(f"the role {{{role}}} has no plain form")
        found = self.resolve(role, " ".join(text.split()))
        if found is None:
            raise PlainError(f"nothing has the name {text} of {{{role}}}")
        return found

    def _check(self, tokens):
        for token in tokens:
            kind = re.sub(r"_(?:open|close)$", "", token.type)
            plain = kind in PLAIN or (kind == "html_block" and OURS.fullmatch(token.content))
            if not plain or token.info.startswith("{") or "class" in token.attrs:
                raise PlainError(f"MyST is left ({kind}): {token.content or token.attrs}")
            self._check(token.children or [])


def nested(block, first):
    """The lines of `block` behind the marks that stand before it in its `first` line."""
    marks = re.match(r"(?:[\s>]|[-*+]\s|\d+[.)]\s)*", first)[0]
    later = re.sub(r"[^>\s]", " ", marks)  # a list has its mark once, a quote on every line
    start, *rest = block.split("\n")
    return "\n".join([marks + start, *((later + line).rstrip() for line in rest)])
