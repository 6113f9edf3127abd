"""Colours of the page, as eyes see them that lack one kind of cone."""

from __future__ import annotations

import itertools
import re

import pytest

from dispatcher.web.settings import STATIC

#: What is left of linear red, green and blue, by Machado, Oliveira and Fernandes (2009).
EYES = {
    "all": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "no red": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "no green": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "no blue": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}

#: Distances in CIELAB: 2 is just to be told apart side by side.
FAR = 20.0

Lab = tuple[float, float, float]


def themes() -> list[dict[str, str]]:
    """The colours of the light theme, of the system's dark one, and of the one that is chosen."""
    text = (STATIC / "page.css").read_text()
    blocks = [one for one in re.findall(r"\{([^{}]*)\}", text) if "--line-1:" in one]
    return [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", one)) for one in blocks]


def seen(colour: str, eyes: str) -> Lab:
    """A colour in CIELAB."""
    plain = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in plain]
    left = [sum(part * one for part, one in zip(row, linear, strict=True)) for row in EYES[eyes]]
    red, green, blue = (min(1.0, max(0.0, one)) for one in left)
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089
    a, b, c = (one ** (1 / 3) if one > 0.008856 else 7.787 * one + 16 / 116 for one in (x, y, z))
    return 116 * b - 16, 500 * (a - b), 200 * (b - c)


def distance(one: Lab, other: Lab) -> float:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) ** 0.5


def dashes() -> list[str]:
    """The dashes of each line, in its order."""
    text = (STATIC / "page" / "colours.js").read_text()
    (told,) = re.findall(r"DASHES = \[(.*)\];", text)
    return re.findall(r"\[[\d, ]*\]", told)


def test_a_dark_theme_is_the_same_however_it_was_chosen() -> None:
    light, by_system, chosen = themes()
    assert by_system == chosen
    assert light != chosen


@pytest.mark.parametrize("eyes", EYES)
@pytest.mark.parametrize("dark", [False, True])
def test_lines_of_one_dash_are_told_apart(eyes: str, dark: bool) -> None:
    """Mutation: two lines that only hue tells apart, or eight of one dash."""
    colours, lines = themes()[dark], dashes()
    assert len(set(lines)) >= 4
    assert len(lines) == 8
    for one, other in itertools.combinations(range(8), 2):
        if lines[one] == lines[other]:
            names = (f"line-{one + 1}", f"line-{other + 1}")
            found = distance(*(seen(colours[name], eyes) for name in names))
            assert found > FAR, (names, found)


@pytest.mark.parametrize("eyes", EYES)
@pytest.mark.parametrize("dark", [False, True])
def test_a_better_rank_is_further_from_the_background(eyes: str, dark: bool) -> None:
    """Lightness alone tells ranks: nobody needs to see the hue."""
    light = [seen(themes()[dark][f"rank-{at}"], eyes)[0] for at in range(3)]
    steps = [after - before for before, after in itertools.pairwise(light)]
    assert all(step > FAR for step in steps) if dark else all(step < -FAR for step in steps), light
