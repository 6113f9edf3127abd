"""``bequeath infer``: flags, JSON, files and stdin; an answer as text and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.trained import USUAL, TrainedSearch
from tests.unit.cli.conftest import Shell

INPUTS = (
    '\nINFER_INPUTS = {"rate": {"kind": "number"}, "words": {"kind": "text"},'
    ' "photo": {"kind": "image"}}\n'
)
SCORED = """
def infer(model, request):
    print("\\x1b[2Jhello")
    return {"answer": request["words"], "scores": {"seven": 0.75, "one": 0.25}, "why": [1]}
"""


def test_values_by_flags_and_the_answer_as_text(search: TrainedSearch, tmp_path: Path) -> None:
    (tmp_path / "p.png").write_bytes(b"\x89PNG")
    search.offer(INPUTS + SCORED)
    place = str(search.place)
    words = ("--number", "rate=0.5", "--text", "words=a=b", "--image", f"photo={tmp_path}/p.png")
    done = Shell()("infer", "1", "-e", place, *words)
    assert done.code == 0, done
    lines = done.out.splitlines()
    assert lines[0] == "a=b"
    assert [line.split()[:2] for line in lines[2:4]] == [["seven", "0.75"], ["one", "0.25"]]
    assert lines[2].count("█") == 3 * lines[3].count("█") > 0
    assert '"why"' in done.out
    assert "hello" in done.err
    assert "\x1b" not in done.out + done.err
    listed = Shell()("trial", "inputs", "1", "-e", place)
    assert [line.split()[:2] for line in listed.out.splitlines()[1:]] == [
        ["rate", "number"], ["words", "text"], ["photo", "image"],
    ]  # fmt: skip


def test_json_from_everywhere(search: TrainedSearch, tmp_path: Path) -> None:
    search.offer(USUAL)
    place = str(search.place)
    (tmp_path / "request.json").write_text('{"x": 2}')

    for typed in ('{"x": 2}', f"@{tmp_path}/request.json", "-"):
        done = Shell()("infer", "1", typed, "-e", place, "--json", input='{"x": 2}')
        assert done.code == 0, done
        assert json.loads(done.out)["answer"]["request"] == {"x": 2}


def test_an_answer_of_another_shape_is_json_that_a_reader_takes(search: TrainedSearch) -> None:
    """Mutation: its line breaks become pictures of line breaks."""
    search.offer(
        "\ndef infer(model, request):\n"
        '    return {"rate": 0.22, "why": "a\\n\\x1b[2J\\u202e\\x9b"}\n'
    )
    done = Shell()("infer", "1", "-e", str(search.place))
    assert done.code == 0, done
    assert json.loads(done.out) == {"rate": 0.22, "why": "a\n\x1b[2J\u202e\x9b"}
    assert len(done.out.splitlines()) == 4
    assert not {"\x1b", "\u202e", "\x9b"} & set(done.out)
    search.offer('\ndef infer(model, request):\n    return "one\\ntwo\\x1b[2J"\n')
    assert Shell()("infer", "1", "-e", str(search.place)).out == "one\ntwo␛[2J\n"


def test_defaults_are_taken_and_listed(search: TrainedSearch) -> None:
    search.offer(
        '\nINFER_INPUTS = {"rate": {"kind": "number", "default": 0.5, "minimum": 0, "maximum": 1},'
        ' "n": {"kind": "number", "minimum": 2}, "words": {"kind": "text", "default": "a\\x1b"}}'
        "\n\ndef infer(model, request):\n    return request\n"
    )
    place = str(search.place)
    done = Shell()("infer", "1", '{"n": 2}', "-e", place)
    assert done.code == 0, done
    assert json.loads(done.out) == {"rate": 0.5, "n": 2, "words": "a\x1b"}
    listed = Shell()("trial", "inputs", "1", "-e", place).out
    rows = [line.split() for line in listed.splitlines()]
    assert rows[0][3:5] == ["default", "limits"]
    assert [row[3:] for row in rows[1:]] == [
        ["0.5", "0", "to", "1"], ["–", "≥", "2"], ['"a\\u001b"', "–"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    "words,code,part",
    [
        (("[1]",), 3, "a request is a JSON object"),
        (("{",), 3, "no JSON can be read"),
        (("@/nowhere",), 3, "cannot be read"),
        (("--number", "x=y"), 2, "is no number"),
        (("--text", "x"), 2, "is not NAME=VALUE"),
        (("--memory", "many"), 2, "--memory"),
        (("--memory", "20mb"), 3, "failed|memory|ended"),
        (("--timeout", "1000"), 2, "--timeout"),
    ],
)
def test_what_is_typed_wrong(
    search: TrainedSearch, words: tuple[str, ...], code: int, part: str
) -> None:
    done = Shell()("infer", "1", *words, "-e", str(search.place))
    assert done.code == code, done
    assert any(each in done.err for each in part.split("|")), done.err
