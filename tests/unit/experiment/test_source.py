"""The text of an experiment file as tokens: what YAML's own scanner makes of it, in less time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.scanner import Scanner

from dispatcher.experiment import yaml_text
from dispatcher.experiment.yaml_text import read_source

_PARTS = (
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    ": ",
    "? ",
    "- ",
    "a",
    "'b'",
    " ",
    "\n",
    "&x ",
    "*x",
    "#c\n",
)


def tokens(text: str, scanner: type[Scanner]) -> list[str]:
    yaml = YAML(typ="safe", pure=True)
    yaml.Scanner = scanner
    found: list[str] = []
    try:
        found.extend(repr(one) for one in yaml.scan(text))
    except YAMLError as error:
        found.append(str(error))
    return found


def ours() -> type[Scanner]:
    """The scanner that files are read by."""
    found: list[type[Scanner]] = []

    class Kept(YAML):
        def compose(self, stream: Any) -> Any:
            found.append(self.Scanner)
            return super().compose(stream)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yaml_text, "YAML", Kept)
        read_source("a: 1", "e.yml")
    return found[0]


OURS = ours()


@given(st.lists(st.sampled_from(_PARTS), max_size=60).map("".join))
@example("a: " + "x" * 1030 + ": 1")
@example("{[" + "y, " * 400 + "]: 1}")
@example("[a\n: 1]")
@example("a\nb: 1")
def test_tokens_are_those_of_yamls_own_scanner(text: str) -> None:
    """Mutations: a key of several lines, or of more than 1,024 characters, is one; a key that is
    needed is forgotten."""
    assert tokens(text, OURS) == tokens(text, Scanner)


def test_each_token_costs_the_same_however_many_lists_are_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Twenty kilobytes of lists took ten seconds. Mutation: at each token all open lists are looked
    through for a key that has become too long."""
    looks = 0

    class Counting(dict[int, Any]):
        def __getitem__(self, level: int) -> Any:
            nonlocal looks
            looks += 1
            return super().__getitem__(level)

        def items(self) -> Any:
            nonlocal looks
            for one in super().items():
                looks += 1
                yield one

    def reset(scanner: Scanner) -> None:
        original(scanner)
        scanner.possible_simple_keys = Counting()

    original = Scanner.reset_scanner
    monkeypatch.setattr(Scanner, "reset_scanner", reset)
    lists = ["[" * 90 + "]" * 90] * 20
    text = f"[{','.join(lists)}]"
    assert len(read_source(text, "e.yml").value) == 20
    assert looks < 30 * len(text)
