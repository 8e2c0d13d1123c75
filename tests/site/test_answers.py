"""The answers of a chapter: what opens when, and where they stand on paper."""

import io

import pytest
from playwright.sync_api import expect
from pypdf import PdfReader

from attnlib.widgets import Predict
from tests.conftest import ROOT, SITE
from tests.site.harness import served, wake, write_page

ANSWERS = """<details class="answer" data-after="sum"><summary>Answer</summary><p>Three.</p>
</details><details class="answer" id="later"><summary>Solution</summary><p>Four.</p></details>"""


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    """A page with a prediction and two answers, under the site's own style and script."""
    folder = tmp_path_factory.mktemp("answers")
    write_page(folder, Predict("1 + 2?", 3, explanation="You added.", key="sum"))
    page = (folder / "page.html").read_text(encoding="utf-8")
    style = (ROOT / "_ext" / "pages" / "static" / "book.css").read_text(encoding="utf-8")
    script = (SITE / "_static" / "book.js").read_text(encoding="utf-8")
    page = page.replace("</head>", f"<style>{style}</style></head>")
    page = page.replace('<p id="after">', f'{ANSWERS}<p id="after">')
    page = page.replace("</main>", f"</main><script>{script}</script>")
    (folder / "page.html").write_text(page, encoding="utf-8")
    (folder / "symbols.js").write_text("", encoding="utf-8")  # which the first key asks for
    with served(folder) as addresses:
        yield addresses


def opened(page):
    return page.locator("details.answer[open]").all_inner_texts()


def check(page, number):
    page.get_by_label("Your answer").fill(number)
    page.get_by_role("button", name="Check").click()


def test_the_right_number_opens_the_answer_below_it_and_no_other(page, addresses):
    wake(page, addresses["http"])
    check(page, "4")
    assert opened(page) == []
    check(page, "3")
    assert opened(page) == ["Answer\n\nThree."]
    wake(page, addresses["http"])  # answered before: that is no reason to show it
    expect(page.get_by_text("✓ done")).to_be_visible()
    assert opened(page) == []


def test_who_gives_up_sees_the_answer(page, addresses):
    wake(page, addresses["file"])
    page.get_by_role("button", name="Reveal").click()
    assert opened(page) == ["Answer\n\nThree."]


def test_on_paper_the_answers_stand_at_the_end_and_then_again_in_their_place(page, addresses):
    wake(page, addresses["http"])
    page.locator("#later summary").click()
    before = page.locator("article").inner_html()
    printed = PdfReader(io.BytesIO(page.pdf()))
    words = " ".join(" ".join(sheet.extract_text() for sheet in printed.pages).split())
    assert words.count("The answer stands at the end of the chapter.") == 2
    assert words.count("1 + 2?") == 2 and words.count("3. You added.") == 1  # the widget's own
    after = words.partition("What comes after.")[2]
    assert "Answers" in words and "Three." in after and "Four." in after
    assert page.locator("article").inner_html() == before and opened(page) == ["Solution\n\nFour."]


def test_on_paper_without_a_script_they_stay_closed(browser, addresses):
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(addresses["file"])
    page.emulate_media(media="print")
    assert not page.get_by_text("Three.").is_visible()
    page.emulate_media(media="screen")
    page.get_by_text("Solution").click()
    assert page.get_by_text("Four.").is_visible()
    page.context.close()
