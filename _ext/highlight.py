"""Code has marks only where they show."""

from pygments.formatters import HtmlFormatter
from pygments.token import Text
from sphinx.highlighting import PygmentsBridge


class PlainNames(HtmlFormatter):
    """Pygments' HTML without the spans that look like plain text: six of ten in a chapter."""

    def format_unencoded(self, tokensource, outfile):
        """Write the code, with a span for each token that has a look of its own."""
        text = self.style.style_for_token(Text)
        plain = {kind for kind, look in self.style if look == text}
        tokens = ((Text if kind in plain else kind, value) for kind, value in tokensource)
        super().format_unencoded(tokens, outfile)


def setup(app):
    """Register with Sphinx."""
    PygmentsBridge.html_formatter = PlainNames
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
