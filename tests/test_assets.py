"""What pages load as it is: minified without a change of what it does, and without unused rules."""

import re

import pytest
import tinycss2

from _ext import assets
from _ext.assets import JAVASCRIPT, Minified, minify, names_in, used_rules, without_unread
from attnlib.widgets.kit import modules
from tests.conftest import ROOT
from tests.helpers import raises


@pytest.mark.parametrize(
    ("suffix", "source", "kept"),
    [
        (".js", "/* a */ const x = 1;\n/* b */\nconst y = 2;\n", "const x=1;const y=2;"),
        (".js", "go(); // then\n\n  /* both\n */ stop();", "go();stop();"),
        (".js", "const a = 1 // no semicolon\nlet b", "const a=1\nlet b"),
        (".js", "f(\n  a,\n) /* g */\n;[b] = c\n\n++d", "f(a,)\n;[b]=c\n++d"),
        (".js", "return (\n  a + +b\n)\nx('c  d')", "return(a + +b)\nx('c  d')"),
        (".js", "a = `${b ? `// ${c}` : 0}  /**/`; // e", "a=`${b?`// ${c}`:0}  /**/`;"),
        (".js", "a = `${b(() => { return `//`; })}`; // c", "a=`${b(()=>{return `//`;})}`;"),
        (".js", "a = /[/*\"]/.test(b) / 2; /* c */", "a=/[/*\"]/.test(b)/ 2;"),
        (".css", "/* a */ b { c: d }\n/* e */\nf::after { content: '/* g */' }",
         'b{c: d}f::after{content: "/* g */"}'),
        (".css", "a  > b ,\nc { d: calc(1px + 2px) ;\n  &:hover { e:\nf } g {} }",
         "a > b,c{d: calc(1px + 2px);&:hover{e: f}g{}}"),
    ],
)  # fmt: skip
def test_minified_is_the_source_without_comments_and_unneeded_space(suffix, source, kept):
    assert minify(source, suffix).strip() == kept


def test_minified_scripts_are_parsed_as_their_sources():
    def of(text):
        return list(tree(JAVASCRIPT.parse(text.encode()).root_node))

    def tree(node):
        if node.type != "comment":
            yield node.type, None if node.children else node.text
            for child in node.children:
                yield from tree(child)

    for folder in ("_ext", "attnlib"):
        for file in (ROOT / folder).rglob("*.js"):
            source = file.read_text(encoding="utf-8")
            assert of(minify(source, ".js")) == of(source), file


def test_what_minify_returned_is_kept_until_its_makers_change(tmp_path, monkeypatch):
    path, first = tmp_path / "minified.json", Minified()
    first.get("a  = 1;", ".js")
    first.save(path)
    second = Minified()
    second.load(path)
    monkeypatch.setattr(assets, "minified", lambda source, suffix: "made again")
    assert second.get("a  = 1;", ".js") == "a=1;\n"
    assert second.get("a  = 1;", ".css") == second.get("b  = 1;", ".js") == "made again"
    monkeypatch.setattr(assets, "MADE_BY", ["another parser"])
    third = Minified()
    third.load(path)
    path.write_text("{", "utf-8")
    third.load(path)
    assert third.texts == {}


def test_each_class_and_each_id_of_a_page_and_each_word_of_a_script_is_a_name(tmp_path):
    page = '<p id="a-b" class="c_1 d">é<b class="é-e">f</b>'
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    script = tmp_path / "_static" / "widgets" / "s.js"
    script.parent.mkdir(parents=True)
    script.write_text('add("g h-i")', encoding="utf-8")
    assert names_in(tmp_path) == {"a-b", "c_1", "d", "é-e", "add", "g", "h-i"}


def test_variables_that_nothing_reads_go():
    style = 'a{--b: url("x;y");c: var(--d)}@media print{e{--d: var(--f);--g: 1;--f: 2}}'
    wanted = "a{c: var(--d)}@media print{e{--d: var(--f);--f: 2}}"
    assert without_unread(style, {"--h"}).replace(";}", "}") == wanted
    assert without_unread(style, {"--b", "--g"}) == style
    assert without_unread("a{--b: var(--c);--c: 1}", set()) == ""  # read by what nothing reads


def test_a_script_that_cannot_be_parsed_is_refused():
    with pytest.raises(ValueError, match="a script that can be parsed; got 'const x = = 1;'"):
        minify("const x = = 1;", ".js")


@pytest.mark.parametrize(
    ("style", "used"),
    [
        (".here{a:b}.gone{c:d}", ".here{a:b}"),
        ("p,.gone p,#here,#gone{a:b}", "p,#here{a:b}"),
        ("p:not(.gone),:is(.gone,.here){a:b}", "p:not(.gone),:is(.gone,.here){a:b}"),
        ("@media print{.gone{a:b}}@media(width>3em){.here{a:b}}", "@media(width>3em){.here{a:b}}"),
        ('@page :first{a:b}.here::after{content:"}.gone{"}', None),
    ],
)
def test_rules_without_an_element_go(style, used):
    rules = tinycss2.parse_stylesheet(style, skip_whitespace=True)
    assert used_rules(rules, {"here"}) == (used or style)


@pytest.mark.parametrize(
    ("script", "got"),
    [
        ('import { two as of } from "../kit/numbers.js";\n', "import { two as of }"),
        ('import numbers from "../kit/numbers.js";\n', "import numbers"),
        ("export let a = 1;\n", "export let a"),
        ("export default a;\n", "export default a"),
        ("export const { a } = b;\n", "export const { a }"),
        (
            'import { three } from "../kit/numbers.js";\n',
            "imports three, which kit does not export",
        ),
        ('import { a } from "./old.js";\n', "imports ./old.js, which is not there"),
    ],
)
def test_what_cannot_be_joined_is_refused(tmp_path, monkeypatch, script, got):
    file = tmp_path / "new" / "new.js"
    file.parent.mkdir()
    file.write_text(f"const b = 1;\n{script}", encoding="utf-8")
    paths = modules._paths("js")
    monkeypatch.setattr(modules, "_paths", lambda suffix: paths | {"new": [file]})
    with pytest.raises(ValueError, match=f"the module new .*{re.escape(got)}"):
        modules.source("new")


def test_a_widget_without_a_file_names_it():
    for read, end in ((modules.source, "js"), (modules.style, "css")):
        with raises(ValueError, f"the widget needs attnlib/widgets/new/new.{end}: write it"):
            read("new")
