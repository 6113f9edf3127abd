"""Plots of the server: computed once for all who ask, kept by cursor, bounded."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dispatcher.errors import PassingBackendError, UserError
from dispatcher.operations.faults import problem_of
from dispatcher.operations.operation import arguments_of
from dispatcher.operations.table import operation
from dispatcher.web import plots as module
from dispatcher.web.faults import RequestRefused
from dispatcher.web.plot_process import DONE, FAILED, WantedPlot, answer_to
from dispatcher.web.plots import MOST_WAITING, PlotProcesses, Plots
from dispatcher.web.work import Pools
from tests.unit.queries.evolution import evolve, make_folder

TIMELINE = operation("plot timeline")


class Computed(PlotProcesses):
    """Stands for the processes: says what was asked, and waits until it may answer."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[WantedPlot] = []
        self.may = threading.Event()
        self.may.set()

    def ask(self, wanted: WantedPlot) -> bytes:
        self.asked.append(wanted)
        assert self.may.wait(20)
        return f"answer {len(self.asked)}".encode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = make_folder(tmp_path)
    evolve(folder, 3)
    return folder


@pytest.fixture
def pools() -> Iterator[Pools]:
    pools = Pools()
    yield pools
    pools.close()


def given(**values: Any) -> Any:
    return arguments_of(TIMELINE, values)


def test_nothing_is_computed_twice_for_the_same_trials(folder: Path, pools: Pools) -> None:
    """Mutation: a key without arguments, or without a cursor."""
    computed = Computed()

    async def ask() -> list[bytes]:
        plots = Plots(pools, computed)
        many = [plots.body(folder, TIMELINE, given()) for _ in range(5)]
        first = await asyncio.gather(*many)
        again = await plots.body(folder, TIMELINE, given())
        other = await plots.body(folder, TIMELINE, given(worker="local"))
        return [*set(first), again, other]

    assert asyncio.run(ask()) == [b"answer 1", b"answer 1", b"answer 2"]
    assert [one.arguments["worker"] for one in computed.asked] == [None, "local"]


def test_what_changed_is_computed_anew_but_not_at_once(
    folder: Path, pools: Pools, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed = Computed()

    async def ask() -> list[bytes]:
        plots = Plots(pools, computed)
        found = [await plots.body(folder, TIMELINE, given())]
        with closing(sqlite3.connect(folder / "journal.sqlite")) as connection:
            connection.execute("UPDATE trials SET touched = touched + 1000")
            connection.commit()
        found.append(await plots.body(folder, TIMELINE, given()))
        monkeypatch.setattr(module, "ANEW_S", 0.0)
        monkeypatch.setattr(module, "ANEW_TIMES", 0.0)
        found.append(await plots.body(folder, TIMELINE, given()))
        return found

    assert asyncio.run(ask()) == [b"answer 1", b"answer 1", b"answer 2"]


def test_too_many_at_once_are_refused(folder: Path, pools: Pools) -> None:
    computed = Computed()
    computed.may.clear()

    async def ask() -> None:
        plots = Plots(pools, computed)
        waiting = [
            asyncio.create_task(plots.body(folder, TIMELINE, given(worker=str(at))))
            for at in range(MOST_WAITING)
        ]
        while plots.under_way < MOST_WAITING:
            await asyncio.wait([asyncio.create_task(asyncio.to_thread(computed.may.wait, 0.02))])
        with pytest.raises(RequestRefused, match="are computed already"):
            await plots.body(folder, TIMELINE, given(worker="one more"))
        computed.may.set()
        assert len(await asyncio.gather(*waiting)) == MOST_WAITING

    asyncio.run(ask())


def test_a_process_answers_as_the_operation_does(folder: Path) -> None:
    told = answer_to(WantedPlot(str(folder), "plot timeline", {}))
    assert told[:1] == DONE
    assert msgspec.json.decode(told[1:])["trials"] == [0, 1, 2]
    wrong = answer_to(WantedPlot(str(folder), "plot slice", {"parameters": ["nope"]}))
    assert wrong[:1] == FAILED
    error = module.error_of(wrong[1:], 0)
    assert isinstance(error, UserError)
    assert "'nope'" in error.message
    assert error.hint.startswith("they differ in: ")


def test_errors_keep_their_kinds() -> None:
    for error in (UserError("a", hint="b", where="c"), PassingBackendError("x")):
        told = module.error_of(msgspec.json.encode(problem_of(error)), 0)
        assert problem_of(told) == problem_of(error)
    killed = module.error_of(b"", -9)
    assert isinstance(killed, PassingBackendError)
    assert "ended with -9" in killed.message


def test_a_process_that_takes_too_long_is_ended(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LIMIT_S", 0.01)
    processes = module.PlotProcesses()
    with pytest.raises(PassingBackendError, match="not there after"):
        processes.ask(WantedPlot(str(folder), "plot timeline", {}))
    assert processes.running == set()
    processes.close()
    with pytest.raises(PassingBackendError, match="the server ends"):
        processes.ask(WantedPlot(str(folder), "plot timeline", {}))
