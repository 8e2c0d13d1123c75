"""The addresses that pages had in the first edition lead to where they are now."""

import pytest

from tests.conftest import SITE
from tests.site.pages import MOVED, address, both_schemes, soup, target


@both_schemes
@pytest.mark.parametrize("name", list(MOVED)[:1])
def test_an_old_address_leads_on_with_its_anchor(page, site, scheme, name):
    anchor = soup(MOVED[name]).select("section section")[-1]["id"]
    page.goto(f"{address(scheme, name, site)}#{anchor}")
    page.wait_for_url(f"{address(scheme, MOVED[name], site)}#{anchor}")
    assert page.locator(f"#{anchor} > :is(h2, h3)").is_visible()


@pytest.mark.parametrize("name", MOVED)
def test_without_javascript_it_leads_on_too(name):
    page, first = soup(name), soup(next(iter(MOVED)))
    assert page.select("script") == first.select("script") != []  # which the other test tries
    assert page.head.find(True)["http-equiv"] == "Content-Security-Policy"
    refresh = page.select_one("noscript meta[http-equiv=refresh]")["content"]
    assert target(name, refresh.removeprefix("0; url=")) == (MOVED[name], "")
    assert target(name, page.body.a["href"]) == (MOVED[name], "")
    assert page.body.a.text == page.title.text == soup(MOVED[name]).h1.contents[0]


def test_the_search_does_not_find_it():
    index = (SITE / "searchindex.js").read_text(encoding="utf-8")
    assert all(new.removesuffix(".html") in index for new in MOVED.values())
    assert not any(old.removesuffix(".html") in index for old in MOVED)
