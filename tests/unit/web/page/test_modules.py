"""The page's modules, tested by node where there is one, and against the product's in Python."""

from __future__ import annotations

import json
import math
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dispatcher import queries
from dispatcher.cli.lazy_group import load
from dispatcher.cli.main import root
from dispatcher.queries.where import WhereError, parse_condition
from dispatcher.store.notes import Annotations
from dispatcher.web import table as table_of_page
from dispatcher.web.lives import lives_in_columns
from dispatcher.web.table import TrialTable
from tests.unit.queries.evolution import evolve, make_folder
from tests.unit.queries.test_history import lived

HERE = Path(__file__).parent
NODE = shutil.which("node")

pytestmark = pytest.mark.skipif(NODE is None, reason="needs node, to run the page's modules")


def asked(what: str, **given: Any) -> Any:
    """An answer of the page's modules."""
    assert NODE is not None
    text = json.dumps({"what": what, **given})
    done = subprocess.run(
        [NODE, str(HERE / "ask.mjs")],
        input=text,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_modules_pass_their_tests() -> None:
    assert NODE is not None
    files = sorted(str(path) for path in HERE.glob("*.test.mjs"))
    assert len(files) > 1
    done = subprocess.run(
        [NODE, "--test", *files], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout[-6000:]


CONDITIONS = [
    "",
    "lr<0.01",
    "result>0.5",
    "lr<=0.01 and act=relu",
    "act!=relu",
    "not act=relu",
    "outcome!=failed",
    "outcome=failed",
    "outcome='failed' or value>0.9",
    "act in (relu, tanh) and not (depth=3 or depth>4)",
    "value=null",
    "value!=null",
    "depth=3.0",
    "depth='3'",
    "act~l",
    "depth~3",
    "lr<relu",
    "act<gelu",
    "parent=null",
    "parent!=null and trial>10",
    "id<5",
    "parameters.depth>=4",
    "`depth`=2",
    "state=ended",
    "width in (16, 64)",
    "lr>1e-3 AND lr<1e-2",
    "true=1",
    "depth=true",
    "metrics.loss<3",
    "nothing=null",
    "cpu_s>0",
    "tag=good",
    "tag!=good",
    "not tag=good",
    "tag~oo and starred=true",
    "starred=0 or tag=null",
    "tag!=null",
    "tag in (good, dataset:x)",
    "tag<b",
    "tag=3",
    "tag~3",
    "parameters.tag=1",
]
WRONG = [
    "lr<",
    "lr 3",
    "(lr<3",
    "lr<3)",
    "lr<3 act=relu",
    "'a",
    "lr & 3",
    "lr<1e999",
    "lr<null",
    "lr in 3",
    "and",
    "lr in (1,",
    "not",
    "lr~null",
    "tag<null",
    "tag",
    "(" * 25 + "lr<1" + ")" * 25,
]


def table_of(trials: list[queries.TrialSummary]) -> dict[str, Any]:
    """Trials as the server's table has them."""
    plain: dict[str, tuple[str, str, list[Any]]] = {
        "trial": ("integer", "trial", [one.id for one in trials]),
        "parent": ("integer", "trial", [one.parent for one in trials]),
        "value": ("number", "objective", [one.value for one in trials]),
        "lr": ("number", "parameter", [one.named_parameters.get("lr") for one in trials]),
        "depth": ("integer", "parameter", [one.named_parameters.get("depth") for one in trials]),
        "starred": ("integer", "trial", [int(one.starred) for one in trials]),
        "width": ("integer", "parameter", [one.named_parameters.get("width") for one in trials]),
    }
    texts = {
        "state": ("trial", [one.state for one in trials]),
        "outcome": ("trial", [one.outcome for one in trials]),
        "act": ("parameter", [one.named_parameters.get("act") for one in trials]),
        "tags": ("trial", [" ".join(one.tags) or None for one in trials]),
    }
    columns = [
        {"name": name, "kind": kind, "group": group, "values": values}
        for name, (kind, group, values) in plain.items()
    ]
    for name, (group, values) in texts.items():
        choices = sorted({one for one in values if one is not None})
        numbered = [None if one is None else choices.index(one) for one in values]
        columns.append(
            {"name": name, "kind": "choice", "group": group, "choices": choices, "values": numbered}
        )
    return {"cursor": "1", "count": len(trials), "columns": columns}


def test_a_condition_finds_in_the_page_what_it_finds_in_the_store(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    evolve(folder, 80)
    kept = Annotations.open(folder / "journal.sqlite")
    for trial, tags in ((3, ["good"]), (4, ["good", "dataset:x"]), (7, ["bad3"]), (9, ["mood"])):
        kept.change_tags(trial, tags, [])
    for trial in (4, 9, 12):
        kept.star(trial, starred=True)
    kept.close()
    with queries.ExperimentReader.open(folder) as reader:
        table = table_of(queries.list_trials(reader))
        wanted = [
            sorted(
                one.id for one in queries.list_trials(reader, queries.TrialFilter(condition=text))
            )
            if text
            else None
            for text in CONDITIONS
        ]
    told = asked("where", table=table, texts=CONDITIONS)
    here = 0
    for text, want, found in zip(CONDITIONS, wanted, told, strict=True):
        if found["local"] and want is not None:
            here += 1
            assert sorted(found["found"]) == want, text
    assert here > 30  # most need no server
    assert not any(
        one["local"] for text, one in zip(CONDITIONS, told, strict=True) if "metrics" in text
    )


def test_what_cannot_be_read_is_at_the_same_place_for_both() -> None:
    told = asked("where", table=table_of([]), texts=WRONG)
    for text, found in zip(WRONG, told, strict=True):
        with pytest.raises(WhereError) as caught:
            parse_condition(text)
        assert found == {"column": caught.value.column}, text


CALLS: list[list[Any]] = [
    ["stop", "digits"],
    ["stop", "digits", {"drain": True}],
    ["kill", "digits"],
    ["resume", "digits"],
    ["takeOver", "digits"],
    ["update", "digits", "trialConcurrency", 8],
    ["update", "digits", "maxExperimentDuration", "2h"],
    ["verify", "digits"],
    ["sweep", "digits"],
    ["share", "digits", 2, True],
    ["revoke", "digits"],
    ["plot", "digits", "slots", [["--last", "600"]]],
    ["show", "digits", 17],
    ["killTrial", "digits", 17],
    ["submit", "digits", '{"name": "it\'s"}'],
    ["log", "digits", 17, "stdout"],
    ["log", "digits", 17, "stderr"],
    ["pin", "digits", 17],
    ["unpin", "digits", 17],
    ["note", "digits", 17, "it's\ngood"],
    ["note", "digits", 17, "--remove 3"],
    ["note", "digits", None, "-1"],
    ["removeNote", "digits", 17, 2],
    ["removeNote", "digits", None, 2],
    ["tag", "digits", 17, {"add": ["good", "dataset:x"], "remove": ["bad"]}],
    ["tag", "digits", None, {"remove": ["bad"]}],
    ["star", "digits", 17, False],
    ["star", "digits", None, True],
    ["leaderboard", {"group": "tag", "name": "digits", "starred": "true"}],
    ["list", "digits", ""],
    ["list", "digits", "lr<0.01 and act='a b'"],
]


def test_the_commands_beside_buttons_are_commands() -> None:
    """Each is read by the command line itself, which takes all of its words."""
    for call, line in zip(CALLS, asked("commands", calls=CALLS), strict=True):
        program, *words = shlex.split(line)
        assert program == "bequeath"
        command: Any = root()
        while (table := getattr(command, "table", None)) is not None:
            name = words.pop(0)
            command = load(name, table[name])
        read = command.make_context(command.name, list(words))
        assert "digits" in [str(one) for one in read.params.values()], (call, read.params)


def test_the_page_finds_the_differences_that_lineage_finds(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    evolve(folder, 60)
    with queries.ExperimentReader.open(folder) as reader:
        nodes = queries.lineage(reader).nodes
        known = {one.id: one.named_parameters for one in queries.list_trials(reader)}
    children = [one for one in nodes.values() if one.parent is not None]
    pairs = [[known[one.parent], known[one.id]] for one in children if one.parent is not None]
    told = asked("words", pairs=pairs)
    paths = {"save_path", "restore_path"}
    for one, names in zip(children, told, strict=True):
        assert set(names) - paths == set(one.changed) - paths


@pytest.mark.parametrize("digits", [15, table_of_page.TIME_DIGITS])
def test_the_page_looks_back_as_the_product_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, digits: int
) -> None:
    """At the very moments of events where the table has all digits of them, between milliseconds
    where it has those that a page gets. Mutation: `<` for `<=`, an attempt without its end, a value
    before the trial was over."""
    monkeypatch.setattr(table_of_page, "TIME_DIGITS", digits)
    folder = make_folder(tmp_path)
    life = lived(folder, 2)
    life.journal.close()
    times = [*[time for time, _ in life.seen][::3], 0.0, life.now + 1.0]
    if digits < 15:
        times = [math.floor(time * 1_000) / 1_000 + 0.0005 for time in times]
    with queries.ExperimentReader.open(folder) as reader:
        table = TrialTable()
        table.put(queries.flat_trials(reader))
        columns = lives_in_columns(reader)
        lives = queries.history(reader)
        mode = reader.mode
    told = {"experiment": "x", "cursor": "", **table.described()}
    found = asked("past", table=told, history=columns, times=times)
    for time, rows in zip(times, found, strict=True):
        then = queries.moment_of(lives, time, mode)
        assert rows == [
            [one.trial, one.state, one.outcome, one.value, one.attempt] for one in then.trials
        ], time
