"""Fonts for the web: what the site draws with, cut down to the characters it needs."""

import logging
from io import BytesIO

from fontTools import subset
from fontTools.ttLib import TTFont

# The styles of our code, once imported, have every logger print all that it has to say.
logging.getLogger("fontTools").setLevel(logging.WARNING)


def subset_font(path, characters, **options):
    """The font at `path` with only `characters`, without hinting; None if it has none of them."""
    font = TTFont(path, recalcTimestamp=False)
    present = {ord(c) for c in characters} & font.getBestCmap().keys()
    if not present:
        return None
    options = subset.Options(hinting=False, **options)
    options.drop_tables += ["FFTM"]  # the font editor's dates, which fontTools would warn of
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=present)
    subsetter.subset(font)
    return font


def woff2(font):
    font.flavor = "woff2"
    out = BytesIO()
    font.save(out)
    return out.getvalue()
