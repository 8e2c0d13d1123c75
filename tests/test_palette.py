"""The palette: contrasts as WCAG 2.2 computes them, and color-vision deficiencies."""

import itertools
import re

import numpy as np
import pytest

from attnlib import palette
from attnlib.palette import OUTCOMES, ROLES, cell_ink

THEMES = {"light": 0, "dark": 1}
TEXT_ROLES = ("query", "key", "value", "weight", "ink", "muted")

# Machado, Oliveira and Fernandes 2009, severity 1.0, applied to linear RGB.
DEFICIENCIES = {
    "none": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


def rgb(role, theme):
    """Return the sRGB channels of a role, from 0 to 1."""
    digits = (ROLES | OUTCOMES)[role][THEMES[theme]]
    return np.array([int(digits[at : at + 2], 16) for at in (1, 3, 5)]) / 255


def linear(channels):
    """Return the light that is emitted, from sRGB channels."""
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    """Return what WCAG 2.2 calls the contrast ratio of two colors."""
    low, high = sorted(linear(color) @ [0.2126, 0.7152, 0.0722] for color in (one, other))
    return (high + 0.05) / (low + 0.05)


def lab(light):
    """Return CIE L*a*b* of linear sRGB at the D65 white point."""
    to_xyz = np.array(
        [
            [0.4124564, 0.3575761, 0.1804375],
            [0.2126729, 0.7151522, 0.0721750],
            [0.0193339, 0.1191920, 0.9503041],
        ]
    )
    x, y, z = np.cbrt(to_xyz @ light / to_xyz.sum(1))  # no role is dark enough for the linear part
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_contrast_by_hand():
    assert contrast(np.zeros(3), np.ones(3)) == pytest.approx(21)
    gray = np.full(3, 0x77 / 255)
    assert contrast(gray, np.ones(3)) == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("theme", THEMES)
def test_text_lines_and_numbers_are_readable(theme):
    page, ink = rgb("page", theme), rgb("ink", theme)
    found = {role: contrast(rgb(role, theme), page) for role in TEXT_ROLES}
    for weight in np.linspace(0, 1, 101):
        cell = weight * rgb("weight", theme) + (1 - weight) * page
        found[f"number in a cell of {weight:.2f}"] = contrast(rgb(cell_ink(weight), theme), cell)
    for role in ("query", "key", "value", "weight", "ink"):
        cell = 0.15 * rgb(role, theme) + 0.85 * page
        found[f"number in a highlighted {role}"] = contrast(ink, cell)
    for outcome in OUTCOMES:
        sign = page if outcome == "nan" else ink
        found[f"sign of {outcome}"] = contrast(sign, rgb(outcome, theme))
    assert {what: ratio for what, ratio in found.items() if ratio < 4.5} == {}
    assert contrast(rgb("line", theme), page) >= 3


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_roles_can_be_told_apart(deficiency, theme):
    """The four roles stay two just noticeable differences (2.3 each) apart.

    Query and weight come closest, which is one reason why color never stands alone.
    """
    seen = {
        role: lab(np.clip(DEFICIENCIES[deficiency] @ linear(rgb(role, theme)), 0, 1))
        for role in ("query", "key", "value", "weight")
    }
    for one, other in itertools.combinations(seen, 2):
        distance = np.linalg.norm(seen[one] - seen[other])
        assert distance >= 4.6, (one, other, distance)


def test_css_declares_every_role_in_both_themes_and_light_ones_can_be_found_again():
    css = palette.css()
    for role, pair in ROLES.items():
        for color in pair:
            assert re.fullmatch("#[0-9a-f]{6}", color)
            assert f"--{role.replace('_', '-')}: {color};" in css
    light = [pair[0] for pair in ROLES.values()]
    assert len(set(light)) == len(light) and palette.light("query") == ROLES["query"][0]
