"""The page of ends and callbacks, as one search."""

from __future__ import annotations

import pytest
import yaml

from tests.support.pages import ROOT, Reader, block_with, blocks, command_lines, python_blocks

PAGE = "docs/ends.md"

KEYS = {
    "experimentName": "ends",
    "trialFunction": "trial:main",
    "searchSpace": {"x": "uniform(0, 1)"},
    "tuner": {"name": "Random", "classArgs": {"seed": 1}},
    "trialConcurrency": 1,
    "trainingService": {"platform": "local", "reuseMode": "inProcess"},
}

NOTIFY = """\
#!/bin/sh
test "$1 $2" = "--channel nas" && touch notified
"""


def printed_of(block: str) -> list[str]:
    """The blocks of the page without a language that begin with this word."""
    return [one.text for one in blocks(ROOT / PAGE, "") if one.text.startswith(block)]


@pytest.fixture
def ended(reader: Reader) -> Reader:
    """A search with the ends and the callbacks of the page, which has reached its target."""
    ends, callbacks = blocks(ROOT / PAGE, "yaml")
    hooks, _ = python_blocks(PAGE)
    reader.file("hooks.py", hooks)
    reader.file("notify.sh", NOTIFY)
    (reader.folder / "notify.sh").chmod(0o700)
    reader.file("trial.py", "def main(parameters):\n    return parameters['x']\n")
    reader.file("experiment.yaml", ends.text + callbacks.text + yaml.safe_dump(KEYS))
    reader.type("bequeath run experiment.yaml")
    return reader


def test_a_target_is_reached_and_raised(ended: Reader) -> None:
    (shown,) = printed_of("reason")
    status = ended.type("bequeath status")
    assert shown.split("0.95 is reached by trial ")[0].split() == (
        status[status.index("reason") :].split("0.95 is reached by trial ")[0].split()
    )
    first = int(status.split("reached by trial ")[1].split(":")[0])
    for command in command_lines(block_with(PAGE, "bequeath resume")):
        ended.type(command.replace("ID", "ends"))
    again = ended.type("bequeath status")
    assert int(again.split("the target 0.97 is reached by trial ")[1].split(":")[0]) >= first
    (log,) = ended.home.glob("ends-*/logs/callbacks.log")
    assert "0 0.1" in log.read_text() or "0 0." in log.read_text()
    assert list(ended.folder.rglob("notified")) or list(ended.home.rglob("notified"))


def test_a_script_hears_of_trials(ended: Reader) -> None:
    _, script = python_blocks(PAGE)
    ended.file("script.py", script)
    printed = ended.type("python script.py")
    numbers = [line.split()[0] for line in printed.splitlines() if line[:1].isdigit()]
    assert sorted(map(int, numbers)) == list(range(len(numbers)))
    assert "better: {'x': " in printed
