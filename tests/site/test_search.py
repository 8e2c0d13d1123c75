"""The search: what it finds, in which order, how it shows it, and how a reader gets there."""

import io
import json
from unittest.mock import MagicMock
from urllib.parse import urlencode

import nbformat
import pytest

from _ext.search import index as search
from tests.conftest import ROOT, SITE
from tests.site.harness import axe, themes
from tests.site.pages import CHAPTER_3, NOTEBOOKS, address, both_schemes

TEXT = (SITE / "searchindex.js").read_text(encoding="utf-8")
INDEX = json.loads(TEXT.removeprefix(search.CALL).removesuffix(");\n"))
KIB = 296  # of the index, compressed: it comes with the first letter that is typed


@pytest.fixture(scope="module")
def window(browser, site):
    """A page, a light one, with its search open."""
    page = browser.new_page()
    page.goto(f"{site}/references.html")
    page.keyboard.press("/")
    yield page
    page.close()


@pytest.fixture
def find(window, site):
    """Search there, and give what is said and the places that are found."""
    page, field = window, window.get_by_role("searchbox")

    def find(query):
        field.fill("")
        page.locator(".said", has_text="Type a word").wait_for()
        field.fill(query)
        page.locator(".said:not(:has-text('Type a word'))").wait_for()
        links = page.locator(".found a").evaluate_all("all => all.map(link => link.href)")
        return page.locator(".said").inner_text(), [link[len(site) + 1 :] for link in links]

    return find


# ------------------------------------------------------------------------- what is found first


@pytest.mark.parametrize(
    ("query", "first", "chapter"),
    [
        ("softmax", "glossary.html#term-softmax", "chapters/01"),
        ("mask", "glossary.html#term-mask", "chapters/05-masks.html"),
        ("causal mask", "glossary.html#term-causal-mask", "chapters/05-masks.html#the-causal-mask"),
        ("positional encoding", "glossary.html#term-positional-encoding", "chapters/07"),
        ("residual", "glossary.html#term-residual-connection", "chapters/08"),
        ("layer normalization", "glossary.html#term-layer-norm", "chapters/08"),
        ("teacher forcing", "glossary.html#term-teacher-forcing", "chapters/11"),
        ("induction head", "glossary.html#term-induction-head", "chapters/13"),
        ("many heads", "chapters/06-many-heads.html", "chapters/06-many-heads.html"),
        ("from scores to output", f"{CHAPTER_3}#from-scores-to-output", CHAPTER_3),
        ("scaled_dot_product_attention", "reference.html#attnlib.scaled", "chapters/"),
        ("Vaswani 2017", "references.html#", "chapters/"),
    ],
)
def test_what_teaches_a_word_stands_before_what_uses_it(find, query, first, chapter):
    _, links = find(query)
    assert links[0].startswith(first)
    assert next(link for link in links if link.startswith("chapters/")).startswith(chapter)


@pytest.mark.parametrize(
    ("query", "same"),
    [
        ("matrix", "matrices"),
        ("gradient", "gradients"),
        ("softmax", "SOFTMAX"),
        ("Bahdanau", "bahdänau"),
        ("Łukasz Kaiser", "łukasz kaiser"),
        ("colours", "colors"),
        ("layer norm", "LayerNorm"),
        ("d_k", "dk"),
        ("the mask", "mask of"),
    ],
)
def test_forms_of_a_word_are_one(find, query, same):
    (said, links), (said_again, links_again) = find(query), find(same)
    assert (said, links[0]) == (said_again, links_again[0])


def test_a_name_of_code_is_found_whole(find, window):
    find("masked_fill")
    for text in window.locator(".found a").all_inner_texts():
        assert "masked_fill" in text


# ----------------------------------------------------------------------------- what is shown


def test_each_place_shows_the_line_with_the_words(find, window):
    _, links = find("average of values")
    assert len(links) > 3
    for link in window.locator(".found li:not(.all) a").all():
        marks = {mark.lower() for mark in link.locator("mark").all_inner_texts()}
        assert any(mark.startswith("average") or mark.startswith("value") for mark in marks)
        assert 20 < len(link.locator(".line").inner_text()) < 240
        assert link.locator(".heading").inner_text()


def test_it_says_what_it_has_not(find, window):
    said, links = find("softmx")
    assert said.startswith("Nothing has “softmx”. Try softmax.") and links == []
    window.get_by_role("button", name="softmax", exact=True).click()
    window.locator(".found a[href$='#term-softmax']").wait_for()
    said, links = find("Zzyzx")
    assert said.startswith("Nothing has “Zzyzx”. Try another word, or look in the glossary")
    said, links = find("zzyzx softmax")
    assert "Nothing has “zzyzx”" in said and "with the rest" in said and links
    said, _ = find(" ".join(f"zzyzx{n}" for n in range(50)))
    assert said.count("“") == 16  # more would only take longer


def test_hostile_words_are_words_and_answered_at_once(page, site):
    for query, said in (
        ('<img src=x onerror="document.title=1">', "Nothing has “img”"),
        ("constructor", "Nothing has “constructor”"),
        ("a " * 5000, "places"),
    ):
        page.goto(f"{site}/search.html?{urlencode({'q': query})}")
        answer = page.locator(".said", has_text=said)
        answer.wait_for(timeout=10_000)
        page.get_by_role("searchbox").fill("")
        answer.wait_for(state="detached")
        page.get_by_role("searchbox").fill(query)
        answer.wait_for(timeout=10_000)
        assert page.title() != "1" and page.locator("article img").count() == 0


def test_answers_are_not_given_away():
    lines = {line.strip() for *_, entries in INDEX for entry in entries for line in entry[2]}
    for name in NOTEBOOKS:
        for cell in nbformat.read((ROOT / name).with_suffix(".ipynb"), as_version=4).cells:
            if cell.cell_type == "code" and "answer" in cell.metadata.get("tags", []):
                code = {line.strip() for line in cell.source.splitlines() if len(line) > 8}
                assert code - lines, (name, cell.source)


# ---------------------------------------------------------------------------- how one gets there


@both_schemes
def test_by_key_from_any_page_to_the_section(page, site, scheme):
    page.goto(address(scheme, "notation.html", site))
    page.keyboard.press("/")
    page.get_by_role("searchbox").wait_for()
    page.keyboard.type("from scores to out")  # as one types
    page.locator(".found a[href$='#from-scores-to-output']").wait_for()
    stops = []
    for key in ("ArrowDown", "ArrowDown", "ArrowUp", "ArrowUp", "ArrowDown"):
        page.keyboard.press(key)
        stops.append(page.evaluate("document.activeElement.localName"))
    assert stops == ["a", "a", "a", "input", "a"]
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/{CHAPTER_3}#from-scores-to-output")


def test_enter_takes_the_first_place_and_closes_the_window(page, site):
    page.goto(f"{site}/{CHAPTER_3}")
    page.keyboard.press("/")
    page.get_by_role("searchbox").fill("from scores to output")
    page.locator(".found a[href$='#from-scores-to-output']").wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/{CHAPTER_3}#from-scores-to-output")  # the page is the same one
    page.locator("dialog").wait_for(state="hidden")
    top = "document.getElementById('from-scores-to-output').getBoundingClientRect().top"
    page.wait_for_function(f"() => {top} >= 0 && {top} < 200")  # it scrolls there


def test_a_slash_in_a_field_is_a_slash_and_escape_closes(page, site):
    page.goto(f"{site}/{CHAPTER_3}")
    page.keyboard.press("/")
    field = page.get_by_role("searchbox")
    field.wait_for()
    page.keyboard.type("a/b")
    assert field.input_value() == "a/b"
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")  # the first one may empty the field
    page.locator("dialog").wait_for(state="hidden")
    prediction = page.locator(".widget-slot[data-widget=Predict] input").first
    prediction.fill("1")
    prediction.press("/")
    assert page.locator("dialog[open]").count() == 0


def test_all_places_stand_on_a_page_of_their_own(page):
    page.goto(address("file", "index.html", ""))
    page.locator(".sidebar-search").click()
    page.get_by_role("searchbox").fill("token")
    more = page.locator(".found .all a")
    count = int(more.inner_text().split()[1])
    more.click()
    page.wait_for_url("**/search.html?q=token")
    page.locator(".said", has_text=f"{count} places.").wait_for()
    assert page.locator(".found a").count() == count
    page.get_by_role("searchbox").press("Enter")  # nobody is sent away from there
    assert page.evaluate("document.activeElement.matches('.found li:first-child a')")


@pytest.mark.parametrize("width", [320, 1280])
def test_the_window_fits_and_axe_finds_nothing(browser, site, width):
    context = browser.new_context(viewport={"width": width, "height": 740}, has_touch=width < 1280)
    page = context.new_page()
    page.goto(f"{site}/{CHAPTER_3}")
    page.locator("[data-search]:visible").first.click()
    page.get_by_role("searchbox").fill("attention")
    page.locator(".found a").first.wait_for()
    box = page.locator("dialog").bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= width
    assert box["y"] >= 0 and box["y"] + box["height"] <= 740
    assert page.evaluate("document.querySelector('.sheet').scrollWidth") <= box["width"]
    page.evaluate("document.querySelector('article').replaceChildren()")  # axe would read it
    for _ in themes(page):
        assert axe(page, ["dialog"]) == []
    page.get_by_role("button", name="Close").click()
    page.locator("dialog").wait_for(state="hidden")
    context.close()


def test_without_javascript_the_page_says_what_to_do(browser):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((SITE / CHAPTER_3).as_uri())
    page.locator(".sidebar-search").click()
    assert "glossary" in page.locator("article noscript").inner_text()
    context.close()


# --------------------------------------------------------------------------------- the index


def test_it_comes_with_the_first_letter(browser, site):
    page = browser.new_page()
    network, files = page.context.new_cdp_session(page), {}
    network.on("Network.responseReceived", lambda e: files.update({e["requestId"]: e["response"]}))
    sizes = {}
    network.on(
        "Network.loadingFinished", lambda e: sizes.update({e["requestId"]: e["encodedDataLength"]})
    )
    network.send("Network.enable")
    page.goto(f"{site}/notation.html")
    page.wait_for_load_state("networkidle")
    of_search = ("/search.js", "/search.css", "/searchindex.js", "/language_data.js")
    assert not [file for file in files.values() if file["url"].endswith(of_search)]
    page.keyboard.press("/")
    page.get_by_role("searchbox").wait_for()
    assert not [file for file in files.values() if file["url"].endswith("/searchindex.js")]
    page.keyboard.type("s")
    page.locator(".found a").first.wait_for()
    weights = [sizes[i] for i, file in files.items() if file["url"].endswith(of_search)]
    page.close()
    assert len(weights) == len(of_search) and sum(weights) < 1024 * KIB


def test_pages_that_are_not_written_again_stay_in_it():
    order = ["chapters/02", "chapters/01"]
    env = MagicMock(toctree_includes={"index": order})
    env.config.root_doc = "index"
    kept, file = search.Index(env, "en", {}, ""), io.StringIO()
    kept.pages = {name: (f"Page {name}", []) for name in ["chapters/01", "chapters/02", "gone"]}
    kept.dump(file, None)
    again = search.Index(env, "en", {}, "")
    again.load(io.StringIO(file.getvalue()), None)
    assert list(again.pages.items()) == [(name, (f"Page {name}", [])) for name in order]
    again.prune(["chapters/01"])
    assert list(again.pages) == ["chapters/01"]


@pytest.mark.parametrize(
    ("tex", "said"),
    [
        (r"\tilde{S} = Q K^\top / \sqrt{d_k}", "S\u0303 = Q Kᵀ / √d_k"),
        (r"\textcolor{#0067a3}{Q}\,\textcolor{#b84a00}{K}^\top", "QKᵀ"),
        (r"d_\text{model} / n_\text{heads}", "d_model / n_heads"),
        (r"\frac{1}{2} \approx 0.5", "1 / 2 ≈ 0.5"),
        (r"\alpha_{ti} \le \lVert x \rVert", "α_ti ≤ ‖ x ‖"),
        (r"\operatorname{softmax}\left(S\right)", "softmax(S)"),
    ],
)
def test_a_formula_is_a_line_of_text(tex, said):
    assert search.plain(tex) == said
