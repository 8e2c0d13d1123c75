"""_ext/content/folding.py: what is closed on a page, joined, and named, without a script."""

import html
import json

from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output, writes

from tests.helpers import sphinx_build


def code(source, *tags, prompt=None, shows=None):
    """Return a cell of code, with a line of output."""
    metadata = {"tags": list(tags)} | ({"mystnb": {"code_prompt_show": prompt}} if prompt else {})
    data = {"text/html": shows} if shows else {"text/plain": f"output of {source}"}
    output = new_output("execute_result", data, execution_count=1)
    return new_code_cell(source, metadata=metadata, outputs=[output], execution_count=1)


def predict(key, question):
    """Return a cell that shows a `Predict`."""
    state = html.escape(json.dumps({"key": key, "question": question}))
    return code(key, shows=f'<p data-widget="Predict" data-state="{state}">')


def box(text, title=""):
    return new_markdown_cell(f":::{{answer}} {title}\n{text}\n:::")


def page(folder, *cells):
    """Return the page of a notebook with these cells."""
    language = {"name": "python", "pygments_lexer": "ipython3"}
    notebook = new_notebook(
        metadata={"language_info": language},
        cells=[new_markdown_cell("# A page\n\n## Your turn"), *cells],
    )
    (folder / "index.ipynb").write_text(writes(notebook), encoding="utf-8")
    settings = {
        "extensions": ["myst_nb", "_ext.content.folding"],
        "myst_enable_extensions": ["colon_fence"],
    }
    out = folder / "_build"
    sphinx_build(folder, out, settings)
    return BeautifulSoup((out / "index.html").read_text(encoding="utf-8"), "html.parser")


def summaries(page):
    return [summary.get_text().strip() for summary in page.select("summary")]


def test_a_cell_is_closed_as_its_tags_say(tmp_path):
    cells = {
        "hide": code("a", "hide-input", prompt="The code of this figure"),
        "hide hide": code("b", "hide-cell", prompt="The same with < PyTorch"),
        "checked": code("c", "hide-cell", prompt="Checked: both shares"),
        "answer": code("d", "answer"),
        "answer again": code("e", "answer", "hide-cell", prompt="Solution"),
    }
    apart = [part for cell in cells.values() for part in (cell, new_markdown_cell("Text."))]
    made = page(tmp_path, *apart)
    folds = made.select("details")
    for fold, (kind, cell) in zip(folds, cells.items(), strict=True):
        assert fold["class"] == kind.split()[:1] and not fold.has_attr("open")
        prompt = cell.metadata.get("mystnb", {}).get("code_prompt_show", "Answer")
        assert fold.summary.get_text().strip() == prompt
        assert fold.select_one(".cell_input").get_text().strip() == cell.source
        fold.extract()
    assert made.select_one("#your-turn").get_text().partition("¶")[2].split() == (
        "output of a Text. Text. Text. Text. Text.".split()
    )


def test_hidden_neighbors_with_one_prompt_are_one(tmp_path):
    cells = [code(name, "hide-input", prompt="The trial") for name in "abc"]
    cells[0].outputs = cells[1].outputs = []
    other = code("d", "hide-input", prompt="The table")
    made = page(tmp_path, *cells, other, code("e", "hide-input", prompt="The table"))
    assert summaries(made) == ["The trial", "The table", "The table"]  # d prints
    assert [pre.get_text() for pre in made.details.select("pre")] == ["a\n", "b\n", "c\n"]
    assert "output of c" not in made.details.get_text() and "output of c" in made.get_text()


def silent(source, prompt=None):
    """Return a hidden cell that prints nothing."""
    cell = code(source, "hide-input", prompt=prompt)
    cell.outputs = []
    return cell


def test_the_code_of_a_picture_stands_behind_one_word_below_it(tmp_path):
    picture = code("draw()", "hide-input", shows='<div class="widget-slot">a picture</div>')
    set_up = [silent("import a", "Set-up"), silent("b = 1", "The numbers")]
    made = page(tmp_path, silent("apart"), new_markdown_cell("Text."), *set_up, picture)
    assert summaries(made) == ["Show code cell source", "Code"]
    (cell,) = (slot.find_parent(class_="cell") for slot in made.select(".widget-slot"))
    assert [part["class"][0] for part in cell.find_all(recursive=False)] == ["cell_output", "code"]
    sources = [pre.get_text().strip() for pre in cell.select("details.code pre")]
    assert sources == ["import a", "b = 1", "draw()"]
    assert len(made.select(".cell")) == 2  # the one that stands apart, and the picture


def test_the_code_of_what_is_no_picture_or_stands_open_stays(tmp_path):
    cells = [code("a", "hide-input", prompt="The table"), silent("b", "Later"), code("c")]
    assert summaries(page(tmp_path, *cells)) == ["The table", "Later"]


def test_neighbors_are_one_answer_and_text_parts_them(tmp_path):
    cells = [code("a", "answer"), box("So.", "What you see"), code("b", "answer", "hide-input")]
    made = page(tmp_path, *cells, new_markdown_cell("Now *this*."), box("*Yes.*"))
    first, second = made.select("details.answer")
    assert summaries(made) == ["What you see", "The code of this answer", "Answer"]
    words = first.get_text()
    assert words.index("output of a") < words.index("So.") < words.index("output of b")
    assert second.em.get_text() == "Yes." and "Now" not in words


def test_a_second_title_is_kept(tmp_path):
    made = page(tmp_path, code("a", "answer", prompt="Solution"), box("So.", "Why `a`"))
    assert summaries(made) == ["Solution"]
    assert made.select_one("details strong").get_text() == "Why a"


def test_the_first_answer_after_a_prediction_names_its_key(tmp_path):
    asked = predict("rows-guess", 'How much is "1 < 2"?')
    cells = [box("Nothing asked."), asked, new_markdown_cell("Then:"), code("a", "answer")]
    made = page(tmp_path, *cells, new_markdown_cell("And:"), code("b", "answer"))
    found = [answer.get("data-after") for answer in made.select("details.answer")]
    assert found == [None, "rows-guess", None]


def test_an_answer_says_to_what_it_belongs(tmp_path):
    sections = [new_markdown_cell("## Exercises\n\n### Sum a row"), code("b", "answer")]
    made = page(tmp_path, predict("rows-guess", "How much?"), code("a", "answer"), *sections)
    found = made.select("details.answer > .answer-of")
    assert [of.get_text() for of in found] == ["Your turn. How much?", "Sum a row"]
    assert [of.a["href"] for of in found] == ["#your-turn", "#sum-a-row"]
