"""A small book, printed as `make pdf` does."""

import re

import pytest
from pypdf import PdfReader

from tests.conftest import SITE
from tests.site.pages import PAGES
from tools import pdf

WHOLE = pdf.BOOK.read_text(encoding="utf-8")
KEPT = ["index", "chapter-chai-piyo-by-hand", "glossary"]
TITLES = ["Contents", "Attention by Hand", "3. “Chai piyo” by hand", "Glossary"]


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A book of few pages."""

    def kept(part):
        return part[0] if part[1] in KEPT else ""

    text = re.sub(r'<article id="([^"]+)">.*?</article>', kept, WHOLE, flags=re.DOTALL)
    text = re.sub(r'<li><a href="#([^"]+)"><span>.*?</li>', kept, text)
    file = tmp_path_factory.mktemp("a book") / "book.html"
    file.write_text(text.replace('"html/', f'"{SITE.as_uri()}/'), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def book(small, browser, tmp_path_factory):
    """The small book, printed."""
    target = tmp_path_factory.mktemp("printed") / "book.pdf"
    assert pdf.make(small, target, browser) == len(PdfReader(target).pages)
    assert list(target.parent.iterdir()) == [target]  # nothing half-made beside it
    return PdfReader(target)


def test_each_page_of_the_site_is_in_the_book_and_each_link_leads_somewhere():
    pages = re.findall(r'<article id="([^"]+)">', WHOLE)
    assert re.findall(r'<li><a href="#([^"]+)"><span>', WHOLE) == pages
    assert len(pages) == len(PAGES) - 1  # the search
    ids = re.findall(r' id="([^"]+)"', WHOLE)
    assert len(ids) == len(set(ids))
    links = set(re.findall(r'<a\b[^>]* href="([^"]*)"', WHOLE))
    inside = {link for link in links if link.startswith("#")}
    assert inside <= {f"#{name}" for name in ids}
    assert all(re.match(r"https?://|mailto:", link) for link in links - inside)


def text_of(page):
    return " ".join(page.extract_text().split())


def links(book):
    """Yield what the links of all pages lead to: an action, or a place by its name."""
    for page in book.pages:
        for note in page.get("/Annots", []):
            note = note.get_object()
            yield note.get("/A") or note["/Dest"]


def test_the_text_is_in_its_own_face(book):
    fonts = [
        font.get_object() for page in book.pages for font in page["/Resources"]["/Font"].values()
    ]
    names = {str(font.get("/BaseFont")) for font in fonts}
    assert not any("Serif" in name for name in names), names  # which would stand in


def test_the_outline_names_each_page_in_order(book):
    chapters = [entry for entry in book.outline if not isinstance(entry, list)]
    assert [entry.title for entry in chapters] == TITLES
    pages = [book.get_destination_page_number(entry) for entry in chapters]
    assert pages == sorted(set(pages))  # each begins a page of its own
    for entry, number in zip(chapters, pages, strict=True):
        assert text_of(book.pages[number]).count(entry.title) >= 1


def test_the_contents_and_the_feet_say_where_each_page_is(book):
    chapters = [entry for entry in book.outline if not isinstance(entry, list)]
    contents = text_of(book.pages[book.get_destination_page_number(chapters[0])])
    for entry in chapters[1:]:
        number = book.get_destination_page_number(entry) + 1
        assert re.search(rf"{re.escape(entry.title)}\W*{number}\b", contents)
        assert text_of(book.pages[number - 1]).startswith(f"{number}{entry.title}")  # the foot


def test_it_says_what_it_is(book):
    assert book.metadata.title == "Attention by Hand"
    assert book.metadata.author == "The Attention by Hand authors"
    assert [round(side) for side in book.pages[0].mediabox[2:]] == [595, 842]  # A4
    assert "4. Why divide" not in text_of(book.pages[0])


def test_links_lead_to_places_of_the_book(book):
    found = list(links(book))
    inside = [link for link in found if not hasattr(link, "get") or link.get("/S") == "/GoTo"]
    assert len(inside) > 50
    assert any("/URI" in link for link in found if hasattr(link, "get"))


def test_words_and_formulas_are_drawn_with_fonts_of_the_book(book):
    whole = " ".join(map(text_of, book.pages))
    assert not re.search(r"\\(?:frac|text|sqrt|begin)\b|\$\$|\{math\}", whole)
    assert "softmax" in whole and "√" in whole
    assert "Solution" in whole and "return weights @ V, weights" in whole  # unfolded
    sections = [part for part in book.outline if isinstance(part, list)]
    assert "Answers" in [part[-1].title for part in sections]  # at the end of the chapter
    for page in book.pages:
        for font in (page["/Resources"].get("/Font") or {}).values():
            font = font.get_object()
            if font["/Subtype"] != "/Type3":  # those are drawings, always inside
                descriptor = font["/DescendantFonts"][0].get_object()["/FontDescriptor"]
                assert {"/FontFile", "/FontFile2", "/FontFile3"} & set(descriptor.get_object())


def test_a_failed_print_leaves_the_last_book_alone(small, tmp_path):
    target = tmp_path / "book.pdf"
    target.write_bytes(b"the last one")
    with pytest.raises(AttributeError):
        pdf.make(small, target, browser=None)
    assert target.read_bytes() == b"the last one" and list(tmp_path.iterdir()) == [target]


def test_without_a_browser_one_line_says_so(monkeypatch):
    monkeypatch.setattr(pdf, "find_browser", lambda: None)
    assert re.fullmatch(r"The book was not printed: run `make browser`.*", pdf.main())
