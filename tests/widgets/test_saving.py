"""A widget's picture as a file, from Python: a browser without a window lays it out."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.image import imread

from attnlib.widgets import DotProduct
from tools.install import find_browser

SVG = "{http://www.w3.org/2000/svg}"


def test_an_svg_has_the_state_and_the_theme_and_a_png_twice_the_pixels(tmp_path, monkeypatch):
    monkeypatch.setenv("CHROMIUM", find_browser())
    for name in ("a.svg", "a.PNG"):
        widget = DotProduct(query=[3.0, 1.0], key=[0.5, 2.0])
        widget.save(str(tmp_path / name), theme="dark", width=640)
    root = ElementTree.parse(tmp_path / "a.svg").getroot()
    texts = " ".join("".join(text.itertext()) for text in root.iter(f"{SVG}text"))
    assert "3.5" in texts  # 3 x 0.5 + 1 x 2
    assert root.find(f"{SVG}rect").get("fill") == "#131416"
    assert 500 < int(root.get("width")) <= 672
    picture = imread(tmp_path / "a.PNG", format="png")
    assert picture.shape[:2] == tuple(2 * int(root.get(side)) for side in ("height", "width"))
    paper = np.array([0x13, 0x14, 0x16]) / 255
    assert np.allclose(picture[0, 0, :3], paper, atol=0.01)
    assert (np.abs(picture[..., :3] - paper).max(-1) > 0.3).sum() > 500  # something is drawn


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"path": "a.pdf"}, "ends in .svg or .png; got 'a.pdf'"),
        ({"path": "a.svg", "width": 100}, "pixels from 280 to 2000; got 100"),
        ({"path": "a.svg", "width": True}, "pixels from 280 to 2000; got True"),
        ({"path": "a.svg", "theme": "blue"}, "'light' or 'dark'; got 'blue'"),
    ],
)
def test_what_cannot_be_saved_is_named(arguments, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        DotProduct().save(**arguments)


def test_without_a_browser_it_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("CHROMIUM", "no-such-browser")
    with pytest.raises(RuntimeError, match=r"needs Chromium, Chrome or Edge .* no-such-browser"):
        DotProduct().save(tmp_path / "a.svg")
    assert list(tmp_path.iterdir()) == []
