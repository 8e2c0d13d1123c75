"""The text face: there or no build, small, with every letter, and nothing moves as it comes."""

import time
from types import SimpleNamespace

import pytest
from fontTools.ttLib import TTFont
from sphinx.errors import ExtensionError

from _ext.pages import typeface
from tests.conftest import SITE, Zipped, serve
from tests.helpers import raises
from tests.site.pages import (
    CHAPTER_2,
    FRAME,
    WATCH,
    address,
    both_schemes,
)

FAQ = "faq.html"
# The width and height of a text on one line, in our face and in each that can stand in here.
SIZES = """async () => {
  const text = document.createElement("p");
  Object.assign(text.style, {position: "absolute", whiteSpace: "nowrap", font: "100px serif"});
  text.textContent = [...document.querySelectorAll("article p")].map(p => p.textContent).join(" ");
  document.body.append(text);
  const sizes = [];
  const stack = getComputedStyle(document.body).getPropertyValue("--font-text");
  for (const [family] of stack.matchAll(/"[^"]+"/g)) {
    try { await document.fonts.load(`100px ${family}`); } catch { continue; }
    text.style.fontFamily = family;
    const {width, height} = text.getBoundingClientRect();
    sizes.push([width, height]);
  }
  return sizes;
}"""


def find(config):
    """Do what a build does first."""
    typeface.find_face(SimpleNamespace(), config)


@pytest.fixture(scope="module")
def config():
    config = SimpleNamespace(html_context={})
    find(config)
    return config


@pytest.fixture(scope="module")
def files(config):
    """The files of the built site, which are those of these sources."""
    files = [SITE / "_static" / face["file"] for face in config.html_context["typeface"]]
    assert set(SITE.glob("_static/text-*")) == set(files)
    return files


def test_without_the_package_there_is_no_build(config, monkeypatch):
    monkeypatch.setattr(typeface, "PACKAGE", "no-such-package")
    message = "the text face is missing: no-such-package has no SourceSerif4[opsz,wght].ttf"
    with raises(ExtensionError, message):
        find(config)


def test_without_a_file_there_is_no_build(config, monkeypatch):
    monkeypatch.setitem(typeface.STYLES, "italic", ("Gone.ttf", (400, 400), "a"))
    message = "the text face is missing: fontpkg-source-serif-4 has no Gone.ttf"
    with raises(ExtensionError, message):
        find(config)


def test_it_is_small(files):
    assert sum(file.stat().st_size for file in files) <= 32 * 1024


def test_it_has_the_weights_that_the_pages_say(files, config):
    for file, face in zip(files, config.html_context["typeface"], strict=True):
        axes = TTFont(file)["fvar"].axes if "fvar" in TTFont(file) else []
        ranges = [(axis.axisTag, axis.minValue, axis.maxValue) for axis in axes]
        least, most = map(int, face["weight"].split())
        assert ranges == ([("wght", least, most)] if least < most else [])


def test_it_goes_by_a_name_of_its_own_under_its_license(files):
    for file in files:
        names = {record.nameID: str(record) for record in TTFont(file)["name"].names}
        assert not names.keys() & {1, 3, 4, 6, 16}  # those of the whole face
        assert "Adobe" in names[0] and "SIL Open Font License" in names[13]


class Late(Zipped):
    """The text face comes when its page has long been read."""

    def send_head(self):
        """Answer, but not at once where it is asked for the face."""
        if "/text-" in self.path:
            time.sleep(1)
        return super().send_head()


@pytest.mark.parametrize(("name", "width"), [(FAQ, 360), (CHAPTER_2, 1280)])
def test_nothing_moves_when_it_comes_late(browser, files, name, width):
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.add_init_script(WATCH)
    with serve(SITE, Late) as late:
        page.goto(f"{late}/{name}")
        page.evaluate("document.fonts.ready")
        page.evaluate(FRAME)
    shifts = page.evaluate("seen.shifts")
    page.close()
    assert sum(shift["value"] for shift in shifts) <= 0.005, shifts


@both_schemes
def test_it_is_there_and_fetched_once(page, site, scheme, files):
    seen = []
    page.on("request", lambda request: seen.append(request.url.rpartition("/")[2]))
    page.goto(address(scheme, FAQ, site))
    page.evaluate("document.fonts.ready")
    assert page.evaluate("family => document.fonts.check(`16px '${family}'`)", typeface.FAMILY)
    assert sorted(name for name in seen if name.startswith("text-")) == sorted(
        f.name for f in files
    )


def test_what_stands_in_takes_its_place(page, site):
    """As wide as our face within a hundredth or two, and as high."""
    page.goto(f"{site}/{FAQ}")
    (width, height), *others = page.evaluate(SIZES)
    if not others:
        pytest.skip("none of the faces that stand in is installed")
    for other_width, other_height in others:
        assert other_width == pytest.approx(width, rel=0.02)
        assert other_height == pytest.approx(height, abs=1)
