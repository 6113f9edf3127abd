"""Values in lines: what Katib would find, in any pieces and whatever else is there."""

from __future__ import annotations

import itertools
import json
import re
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from trial_runtime.agent.programs.lines import (
    FILTER_S,
    MOST_LINE,
    FilterTooSlow,
    JsonLines,
    LineSplitter,
    TextLines,
    moment_of,
    named_values,
)

#: Katib's default filter, with the blanks that Go means.
KATIBS = re.compile(
    r"([\w|-]+)[\t\n\f\r ]*=[\t\n\f\r ]*([+-]?\d*(\.\d+)?([Ee][+-]?\d+)?)", re.ASCII
)

#: Texts in which names, signs, blanks and numbers meet often.
CLOSE = st.text(alphabet="ab_|-=+.eE01 \t\f\vé", max_size=40)


@given(CLOSE)
@example("a=1a=2")
@example("a==1")
@example("a = = 1e5e=3")
@example("|-=.5")
@settings(max_examples=300, deadline=None)
def test_names_and_values_are_those_of_katibs_own_filter(line: str) -> None:
    """Mutation: a name that reaches into the match before it, or a blank that is none to Go."""
    assert list(named_values(line)) == [match.groups()[:2] for match in KATIBS.finditer(line)]


def test_values_that_are_not_finite_are_seen() -> None:
    """Katib's filter finds an empty text there, and the last finite value would count."""
    assert list(named_values("loss=nan acc=-Inf b=info c=none")) == [
        ("loss", "nan"),
        ("acc", "-Inf"),
        ("b", ""),
        ("c", ""),
    ]


def test_a_long_line_costs_what_its_length_says() -> None:
    """Mutation: Katib's expression itself, which needs minutes for this line."""
    begun = time.process_time()
    assert list(named_values("a" * 200_000)) == []
    assert list(named_values("a=" * 50_000)) == [("a", "")] * 50_000
    assert time.process_time() - begun < 20


@given(
    st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\r", b"")), max_size=20),
    st.lists(st.integers(0, 400), max_size=8),
)
@settings(max_examples=150, deadline=None)
def test_lines_are_the_same_in_whatever_pieces_they_come(
    lines: list[bytes], cuts: list[int]
) -> None:
    """Mutation: a line that is lost, or found twice, where two pieces meet."""
    content = b"\n".join(lines)
    places = [0, *sorted(min(cut, len(content)) for cut in cuts), len(content)]
    splitter, taken = LineSplitter(), []
    for start, end in itertools.pairwise(places):
        taken += splitter.feed(content[start:end])
    taken += splitter.rest()
    assert taken == [line for line in content.split(b"\n") if line]


def test_a_carriage_return_ends_a_line_and_only_lines_of_interest_are_kept() -> None:
    splitter = LineSplitter([b"loss", b"acc"])
    assert splitter.feed(b"epoch 1\r 10% loss=0.5\r 90% loss=0.4") == [b" 10% loss=0.5"]
    assert splitter.feed(b"\nnothing\n\nacc=1\n") == [b" 90% loss=0.4", b"acc=1"]
    assert splitter.rest() == []


@pytest.mark.parametrize("size", [MOST_LINE, MOST_LINE + 1, 5 * MOST_LINE])
@pytest.mark.parametrize("piece", [1000, 10 * MOST_LINE])
def test_a_line_that_is_too_long_is_left_out_and_counted(size: int, piece: int) -> None:
    """Mutation: its end is taken for a line of its own."""
    long = b"loss=1 " + b"x" * (size - 14) + b" loss=2"
    content = b"loss=3\n" + long + b"\nloss=4\n"
    splitter, taken = LineSplitter([b"loss"]), []
    for start in range(0, len(content), piece):
        taken += splitter.feed(content[start : start + piece])
    short = size <= MOST_LINE
    assert [line for line in taken if line != long] == [b"loss=3", b"loss=4"]
    assert (long in taken, splitter.too_long) == (short, 0 if short else 1)


@given(st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_junk_says_nothing_and_harms_nobody(junk: bytes) -> None:
    readers = (TextLines(["loss"]), TextLines(["loss"], [r"(\w+):(\d+)"]), JsonLines(["loss"]))
    for reader in readers:
        reader.read(junk)
        reader.read(b'{"loss": ' + junk + b"}")
        measured = reader.read(b"loss=" + junk)
        assert measured is None or all(name == "loss" for name, _ in measured.values)


def test_a_line_of_text_has_values_a_step_and_a_time() -> None:
    reader = TextLines(["accuracy", "loss"])
    line = b"1970-01-01T00:00:05Z INFO Epoch=4 epoch=3 step=x accuracy = 9.1e-1, loss=-.5"
    measured = reader.read(line)
    assert measured is not None
    assert measured.values == [("accuracy", 0.91), ("loss", -0.5)]
    assert (measured.step, measured.at) == (3, 5.0)
    assert reader.read(b"Accuracy=0.5 val_accuracy=1 my-loss=2") is None
    assert reader.read(b"loss=") is None
    coloured = reader.read(b"\x1b[1;32maccuracy\x1b[0m=\x1b[1m0.5\x1b[0m")
    assert coloured is not None
    assert coloured.values == [("accuracy", 0.5)]


def test_a_step_that_is_a_metric_is_one() -> None:
    measured = TextLines(["epoch"]).read(b"epoch=3 step=7")
    assert measured is not None
    assert (measured.values, measured.step) == ([("epoch", 3.0)], 7)


def test_filters_name_their_own_groups() -> None:
    reader = TextLines(["auc"], [r"\{metric: (\w+), value: ([0-9.]+)\}", r"(\w+) is ([^ ]+)"])
    measured = reader.read(b"{metric: auc, value: 0.25} auc is 0.5 auc is high")
    assert measured is not None
    assert measured.values == [("auc", 0.25), ("auc", 0.5)]


def test_a_filter_that_takes_for_ever_is_given_up() -> None:
    """Mutation: the agent's loop, which serves all trials of a host, waits for it."""
    reader = TextLines(["auc"], [r"(a+)+(b)$"])
    begun = time.process_time()
    with pytest.raises(FilterTooSlow):
        reader.read(b"auc" + b"a" * 60)
    assert time.process_time() - begun < 100 * FILTER_S
    assert reader.read(b"auc") is None  # and the next line is read


def test_json_has_numbers_or_texts_of_numbers() -> None:
    """As Katib's collector takes texts only, and hypertune writes them."""
    reader = JsonLines(["auc", "loss"])
    record = {"auc": "0.5", "loss": 2, "global_step": "7", "timestamp": 12.5, "trial": "0"}
    measured = reader.read(json.dumps(record).encode())
    assert measured == ([("auc", 0.5), ("loss", 2.0)], 7, 12.5)
    for text in ('{"auc": true}', '{"auc": "high"}', "[1]", "null", "{", '{"auc": {"a": 1}}'):
        assert reader.read(text.encode()) is None
    for text in ('{"auc": NaN}', '{"auc": "-inf"}', '{"auc": 1e999}'):
        measured = reader.read(text.encode())
        assert measured is not None
        assert measured.values == [("auc", None)]


@pytest.mark.parametrize(
    "stamp, moment",
    [
        ("1970-01-02T00:00:00Z", 86400.0),
        ("1970-01-01T00:00:00.250000000Z", 0.25),
        ("1969-12-31T23:00:00-01:30", 1800.0),
        (3, 3.0),
        (2.5, 2.5),
        ("1970-13-01T00:00:00Z", None),
        ("1970-01-01 00:00:00", None),
        (True, None),
        (None, None),
    ],
)
def test_times_are_numbers_or_rfc_3339(stamp: object, moment: float | None) -> None:
    assert moment_of(stamp) == moment
