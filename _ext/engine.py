"""The embedded JavaScript engine, which draws at build what a page would draw in its browser.

It has no page, no event loop, no console and no network. Formulas and the widgets' pictures are
made in it; the tests run the widgets' arithmetic in it.
"""

import re

import dukpy


class Engine:
    """A JavaScript world of its own, in which `sources` have run."""

    def __init__(self, *sources):
        self._interpreter = dukpy.JSInterpreter()
        for source in sources:
            self._interpreter.evaljs(f"{source}\n;0")

    def __call__(self, expression, **values):
        """The value of an expression, in which `values` stand as `dukpy.name`; all is JSON."""
        return self._interpreter.evaljs(expression, **values)


def widget_engine(module):
    """An engine in which `widget` is what the text of a widget's module exports."""
    script = re.sub(r"^export default ", "globalThis.widget = ", module, flags=re.MULTILINE)
    return Engine(re.sub(r"^export ", "", script, flags=re.MULTILINE))
