"""What the extensions remember: of one build, and of each page from build to build.

Every attribute that an extension adds to Sphinx's application or environment is one of these.
"""

from dataclasses import dataclass, field


@dataclass
class PageState:
    """What is known of a page once it has been read. Sphinx stores it with its environment.

    Attributes
    ----------
    formulas : set of (str, bool)
        The TeX of each formula, and whether it stands on a line of its own.
    equations : dict
        The same of the equations that have a label, by the anchors that lead to them.
    widgets : set of (str, str)
        The widgets, each with its view if each view has a file of its own.
    """

    formulas: set = field(default_factory=set)
    equations: dict = field(default_factory=dict)
    widgets: set = field(default_factory=set)


@dataclass
class BuildState:
    """What is made once in a build.

    Attributes
    ----------
    formulas : FormulaCache
        The formulas that have been typeset.
    chapters : list of Chapter
        The chapters of the book.
    titles : dict
        What the pages were called before anything was read.
    definitions : dict
        What each term of the glossary means, by page and anchor.
    written : set of str
        The chapters whose pages have been written.
    wheel : str
        The name of the file that holds `attnlib`.
    """

    formulas: object = None
    chapters: list | None = None
    titles: dict = field(default_factory=dict)
    definitions: dict = field(default_factory=dict)
    written: set = field(default_factory=set)
    wheel: str = ""


def of_build(app):
    """The state of this build."""
    if not hasattr(app, "build_state"):
        app.build_state = BuildState()
    return app.build_state


def of_pages(env):
    """The states of all pages: {name: state}."""
    if not hasattr(env, "page_states"):
        env.page_states = {}
    return env.page_states


def of_page(env, name):
    """The state of a page."""
    return of_pages(env).setdefault(name, PageState())


def all_formulas(env):
    """The formulas of the book."""
    return set().union(*(state.formulas for state in of_pages(env).values()))


def forget(app, env, name):
    """A page has changed or is gone."""
    of_pages(env).pop(name, None)


def merge(app, env, names, other):
    """Sphinx has read some pages in another process."""
    of_pages(env).update({name: of_page(other, name) for name in names})


def setup(app):
    """Register with Sphinx."""
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
