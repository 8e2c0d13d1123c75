"""What the extensions remember: of one build, and of each page from build to build.

Every attribute that an extension adds to Sphinx's application or environment is one of these.
"""

from dataclasses import dataclass, field


@dataclass
class PageState:
    """What is known of a page once it has been read. Sphinx stores it with its environment."""

    # The TeX of each formula, and whether it stands on a line of its own; the same of those that
    # have a label, by the anchors that lead to them.
    formulas: set = field(default_factory=set)
    equations: dict = field(default_factory=dict)
    # The name of each widget, with its view if each view has a file of its own.
    widgets: set = field(default_factory=set)


@dataclass
class BuildState:
    """What is made once in a build."""

    formulas: object = None  # a FormulaCache: those that have been typeset
    chapters: list | None = None  # of the book
    titles: dict = field(default_factory=dict)  # of the pages, before anything was read
    definitions: dict = field(default_factory=dict)  # of the glossary's terms, by page and anchor
    written: set = field(default_factory=set)  # the chapters whose pages have been written
    wheel: str = ""  # the name of the file that holds `attnlib`


def of_build(app):
    if not hasattr(app, "build_state"):
        app.build_state = BuildState()
    return app.build_state


def of_pages(env):
    """The states of all pages: {name: state}."""
    if not hasattr(env, "page_states"):
        env.page_states = {}
    return env.page_states


def of_page(env, name):
    return of_pages(env).setdefault(name, PageState())


def all_formulas(env):
    return set().union(*(state.formulas for state in of_pages(env).values()))


def forget(app, env, name):
    """A page has changed or is gone."""
    of_pages(env).pop(name, None)


def setup(app):
    app.connect("env-purge-doc", forget)
