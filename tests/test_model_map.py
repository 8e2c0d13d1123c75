"""_ext/course/model_map.py: the map of the whole model, and which chapter lights what."""

from types import SimpleNamespace

import pytest
from bs4 import BeautifulSoup

from _ext.course import chapters as course
from _ext.course import model_map
from tests.helpers import raises


def chapter(*parts, file="one.ipynb"):
    return SimpleNamespace(file=file, stored=lambda key: list(parts))


def test_every_part_is_drawn_within_the_map_and_frames_hold_their_parts():
    soup = BeautifulSoup(model_map.drawing(["norm"]), "html.parser")
    assert len(soup.select(".part")) == len(model_map.PARTS)
    assert len(soup.select(".lit rect")) == 2  # the norm stands twice
    for label, boxes in model_map.PARTS.values():
        for x, y, width, height in boxes:
            assert 0 <= x <= x + width <= model_map.WIDTH, label
            assert 0 <= y <= y + height <= model_map.HEIGHT, label


def test_a_part_leads_to_the_first_chapter_that_lights_it():
    parts = list(model_map.PARTS)
    first, second = chapter(*parts[:3]), chapter(*parts[2:], file="two.ipynb")
    found = model_map.taught([first, second])
    assert [found[part] for part in parts[:4]] == [first, first, first, second]
    assert list(model_map.taught(course.read())) == parts


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (["tokens", "gates"], "one.ipynb: the map has no part 'gates'"),
        (["tokens"], "no chapter lights 'embedding' of the map in its metadata"),
    ],
)
def test_a_part_that_is_unknown_or_dark_is_named(parts, message):
    with raises(course.ChapterError, message):
        model_map.taught([chapter(*parts)])
