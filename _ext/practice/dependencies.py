"""What an exercise needs of its chapter: the statements on which its cells depend."""

import ast
import symtable
import sys
from dataclasses import dataclass

from _ext.practice.modules import modules, modules_named

STANDARD = {"numpy", *sys.stdlib_module_names}


@dataclass(frozen=True)
class Statement:
    """A statement of a chapter: the names that it reads, and those that it makes or changes."""

    source: str
    reads: frozenset
    makes: frozenset
    lacks: frozenset = frozenset()  # the module that it imports, if a page has not got it


def read_names(source):
    """The names that a piece of code expects to be there, Python's own among them."""
    found, tables = set(), [symtable.symtable(source, "", "exec")]
    for table in tables:
        tables += table.get_children()
        top = table.get_type() == "module"
        names = (name for name in table.get_symbols() if name.is_referenced())
        found |= {name.get_name() for name in names if top or name.is_global()}
    return frozenset(found)


def made_names(node):
    """The names that a statement binds, and those of what it changes in place."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return frozenset([node.name])
    names = set()
    for part in ast.walk(node):
        if isinstance(getattr(part, "ctx", None), ast.Store):
            while isinstance(part, ast.Attribute | ast.Subscript):
                part = part.value
            names |= {part.id} if isinstance(part, ast.Name) else set()
    return frozenset(names)


def imports(node):
    """An import as statements of one name each."""
    for alias in node.names:
        one = ast.Import([alias])
        module = alias.name.partition(".")[0]
        if isinstance(node, ast.ImportFrom):
            one = ast.ImportFrom(node.module, [alias], node.level)
            module = node.module.partition(".")[0]
        there = modules().keys() | STANDARD
        lacks = set(modules_named(one) or [module]) - there
        makes = (alias.asname or alias.name).partition(".")[0]
        yield Statement(ast.unparse(one), frozenset(), frozenset([makes]), frozenset(lacks))


def statements(source):
    """The statements of a cell; none of one with IPython's own commands."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from imports(node)
        else:
            text = ast.unparse(node)
            yield Statement(text, read_names(text), made_names(node))


def dependencies(cells, chapter, given):
    """The statements that the cells of an exercise need, and the modules that a page lacks for it.

    `chapter` has all statements that stand above them. A learner counts on those of the first cell,
    the first `given`: they are taken along wherever a page can run them.
    """
    lacking, needs = {}, []
    for one in chapter:
        needs.append(one.lacks.union(*(lacking.get(name, ()) for name in one.reads)))
        lacking |= dict.fromkeys(one.makes, needs[-1])
    defined = frozenset().union(
        *(made_names(node) for cell in cells for node in ast.parse(cell).body)
    )
    wanted = frozenset().union(*map(read_names, cells)) - defined
    taken, lacks = [], frozenset()
    for at, one in reversed([*enumerate(chapter)]):
        if one.makes & wanted:
            wanted |= one.reads
            lacks |= needs[at]
        elif at >= given or needs[at]:
            continue
        taken.insert(0, one.source)
    return "\n".join(taken), tuple(sorted(lacks))
