"""DotProduct: the products and the shadow, in Python, in JavaScript and in the picture."""

import numpy as np
import pytest

from attnlib.widgets import DotProduct
from tests.widgets.pictures import close, js, picture, run
from tests.widgets.samples import every


def test_the_key_of_the_chapter_by_hand():
    """The chapter's key (0.5, 2) and query (2, 1)."""
    dot = DotProduct()
    np.testing.assert_array_equal(dot.products, [1, 2])
    assert (dot.score, dot.length, dot.shadow) == pytest.approx((3, 5**0.5, 3 / 5**0.5))
    rows = [row.get_text(" ").split() for row in picture(dot).select("tbody tr")]
    assert rows[0][-10:] == ["2", "·", "0.5", "=", "1", "0.45", "·", "2.24", "=", "1"]
    assert rows[1][-10:] == ["1", "·", "2", "=", "2", "0.89", "·", "2.24", "=", "2"]
    assert (DotProduct(key=[3, 0]).score, DotProduct(key=[-1, 2]).score) == (6, 0)
    nowhere = DotProduct(query=[0, 0])
    assert (nowhere.score, nowhere.shadow) == (0, 0)


@every(DotProduct)
def test_the_shadow_is_the_projection_and_javascript_has_it_too(dot):
    query, key = np.array(dot.query, float), np.array(dot.key, float)
    # An independent answer: the foot of the key is the nearest point of the line of the query.
    foot = np.linalg.lstsq(query[:, None], key, rcond=None)[0][0] * query
    assert abs(dot.shadow) == pytest.approx(np.linalg.norm(foot), abs=1e-9)
    assert dot.shadow * dot.length == pytest.approx(dot.score, abs=1e-9)
    found = js(dot, "compute(state)")
    for name in ("products", "score", "length", "shadow"):
        close(found[name], getattr(dot, name), 1e-12)
    assert sum(found["shadows"]) == pytest.approx(dot.shadow, abs=1e-9)
    names = run(js(dot, "code(state)"))
    np.testing.assert_allclose([names["score"], names["shadow"]], [dot.score, dot.shadow])
    # Both columns of the picture come to the score.
    soup = picture(dot)
    shown = [soup.select_one(f"[data-part={part}]").get_text() for part in ("score", "along")]
    assert shown[0] == shown[1]
    assert float(shown[0].replace("−", "-")) == pytest.approx(dot.score, abs=0.006)
