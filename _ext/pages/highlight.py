"""Code is quiet: colors belong to the roles, so syntax is shown by weight and by gray.

Words of the language are bold, strings are softer than names, and comments are softest. Code has
marks only where they show.
"""

from pygments.formatters import HtmlFormatter
from pygments.style import Style
from pygments.token import Comment, Generic, Keyword, Operator, String, Text, Token
from sphinx.highlighting import PygmentsBridge

from attnlib import palette


def looks(theme, strings, comments):
    """How each kind of token looks in a theme, 0 for light and 1 for dark."""
    return {
        Token: palette.ROLES["ink"][theme],
        Keyword: "bold",
        Keyword.Constant: "nobold",  # a value like any other
        Operator.Word: "bold",
        String: strings,
        String.Doc: comments,
        Comment: comments,
        Generic.Error: "bold",  # of a traceback
    }


class Light(Style):
    """On a light page."""

    background_color = palette.ROLES["page"][0]
    styles = looks(0, "#50505a", "#6d6d77")


class Dark(Style):
    """On a dark page."""

    background_color = palette.ROLES["page"][1]
    styles = looks(1, "#b6b6c0", "#8e8e98")


class PlainNames(HtmlFormatter):
    """Pygments' HTML without the spans that look like plain text: six of ten in a chapter."""

    def format_unencoded(self, tokensource, outfile):
        text = self.style.style_for_token(Text)
        plain = {kind for kind, look in self.style if look == text}
        tokens = ((Text if kind in plain else kind, value) for kind, value in tokensource)
        super().format_unencoded(tokens, outfile)


def setup(app):
    PygmentsBridge.html_formatter = PlainNames
