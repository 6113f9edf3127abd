"""One look for all: however many ask, a head and a store are asked once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from dispatcher.experiments.standing import Standing, standing
from dispatcher.store import SqliteJournal
from dispatcher.web import follower as follower_module
from dispatcher.web import live
from dispatcher.web.faults import RequestRefused
from dispatcher.web.follower import Follower
from dispatcher.web.live import MOST_STREAMS, Hub
from dispatcher.web.work import MOST_WAITING, Pools, WorkPool
from tests.unit.queries.evolution import evolve, make_folder
from tests.unit.store.life import Life


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = make_folder(tmp_path)
    evolve(folder, 3)
    return folder


def with_hub(act: Callable[[Hub], Awaitable[None]]) -> None:
    """Run in an event loop, with threads that end."""

    async def run() -> None:
        pools = Pools()
        hub = Hub(pools)
        try:
            await act(hub)
        finally:
            hub.close()
            pools.close()

    asyncio.run(run())


def test_many_who_ask_at_once_ask_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutation: a standing for each browser."""
    asked: list[Path] = []

    def count(where: Path, ask: object) -> Standing:
        asked.append(where)
        return standing(where, lambda _: None)

    monkeypatch.setattr(live, "standing", count)
    monkeypatch.setattr(live, "STAND_S", 1e9)

    async def act(hub: Hub) -> None:
        watch = await hub.watch(folder)
        await asyncio.gather(*(watch.standing() for _ in range(50)))
        assert await hub.watch(folder) is watch

    with_hub(act)
    assert asked == [folder]


def test_streams_that_end_make_room(folder: Path) -> None:
    async def act(hub: Hub) -> None:
        held = [hub.looking(folder, stream=True) for _ in range(MOST_STREAMS)]
        for one in held:
            await one.__aenter__()
        with pytest.raises(RequestRefused, match="streams are open"):
            async with hub.looking(folder, stream=True):
                pass
        async with hub.looking(folder, stream=False):
            pass
        await held.pop().__aexit__(None, None, None)
        async with hub.looking(folder, stream=True):
            assert hub.streams == MOST_STREAMS
        for one in held:
            await one.__aexit__(None, None, None)
        assert hub.streams == 0

    with_hub(act)


def test_too_much_work_is_refused_and_not_queued() -> None:
    """Mutation: a queue without an end."""

    async def run() -> None:
        pool = WorkPool(1, "test")
        go = asyncio.Event()
        loop = asyncio.get_running_loop()

        def wait() -> None:
            asyncio.run_coroutine_threadsafe(go.wait(), loop).result()

        tasks = [asyncio.create_task(pool.run(wait)) for _ in range(MOST_WAITING + 1)]
        await asyncio.sleep(0)
        with pytest.raises(RequestRefused, match="too many requests"):
            await pool.run(wait)
        go.set()
        await asyncio.gather(*tasks)
        assert await pool.run(lambda: 3) == 3
        pool.close()

    asyncio.run(run())


def test_who_asks_for_the_table_takes_no_step_from_those_who_follow(tmp_path: Path) -> None:
    """Mutation: a step that was taken for one answer reaches no stream."""
    folder = make_folder(tmp_path)
    with closing(SqliteJournal.open(folder / "journal.sqlite", epoch=1)) as journal:
        life = Life(journal)
        life.begin()
        follower = Follower(folder)
        first = follower.step()
        assert first is not None
        assert first.anew
        life.whole(0)
        follower.whole()  # somebody opens the page meanwhile
        life.whole(1)
        since = follower.since(first.cursor)
        assert {row["trial"] for row in since.trials} >= {0, 1}
        seen: set[int] = set()
        cursor = first.cursor
        while (step := follower.step()) is not None:
            assert step.before == cursor
            cursor = step.cursor
            seen |= {row["trial"] for row in step.trials} if not step.anew else {0, 1}
        assert seen >= {0, 1}
        assert cursor == since.cursor == follower.cursor
        follower.close()


@pytest.mark.parametrize("bound", ["MOST_ASIDE", "MOST_ROWS_ASIDE"])
def test_one_who_asks_for_the_table_again_and_again_fills_no_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    """A script that polls, and nobody who follows. Mutation: steps wait for ever for somebody to
    take them; or the oldest are forgotten, and who follows from there hears nothing of them."""
    monkeypatch.setattr(follower_module, bound, 10)
    folder = make_folder(tmp_path)
    with closing(SqliteJournal.open(folder / "journal.sqlite", epoch=1)) as journal:
        life = Life(journal)
        life.begin()
        follower = Follower(folder)
        first = follower.step()
        assert first is not None
        for trial in range(40):
            life.whole(trial)
            follower.whole()
        steps = []
        while (step := follower.step()) is not None:
            steps.append(step)
        assert sum(len(one.trials) for one in steps) <= 20
        assert len(steps) <= 10
        assert steps[0].anew, "all is to be read again"
        for before, after in pairwise([first, *steps]):
            assert after.before == before.cursor
        assert steps[-1].cursor == follower.cursor
        follower.close()


def test_steps_are_kept_within_a_bound_and_whoever_comes_later_is_told_by_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of a search with hundreds of parameters have kilobytes each. Mutation: so many rows, or
    so many steps, whatever they hold; the rows themselves beside what is sent."""
    monkeypatch.setattr(live, "MOST_STEP_BYTES", 100_000)
    monkeypatch.setattr(live, "LOOK_S", 0.01)
    folder = make_folder(tmp_path)
    wide = msgspec.json.encode({f"parameter{n}": "x" * 100 for n in range(100)}).decode()

    async def act(hub: Hub) -> None:
        with closing(SqliteJournal.open(folder / "journal.sqlite", epoch=1)) as journal:
            life = Life(journal)
            life.begin()
            async with hub.looking(folder, stream=True) as watch, asyncio.timeout(60):
                while not watch.cursor:
                    await watch.wait(1.0)
                begun = watch.cursor
                for trial in range(24):
                    life.propose(trial, None, wide)
                    life.run(trial)
                    life.deliver(trial)
                    reached = watch.cursor
                    while watch.cursor == reached:
                        await watch.wait(1.0)
                assert 0 < watch.kept_bytes <= 100_000
                assert watch.kept_step(begun) is None
                told = msgspec.json.decode((await watch.step_from(begun)).body)
                assert {row["trial"] for row in told["trials"]} >= set(range(23))

    with_hub(act)


def test_who_follows_goes_on_after_too_much_work(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: a refusal ends the following, and all streams stand still until somebody comes."""
    refused: list[int] = []

    async def act(hub: Hub) -> None:
        real = WorkPool.run

        async def run(pool: WorkPool, act: Callable[..., object], *given: object) -> object:
            if len(refused) < 3 and getattr(act, "__name__", "") == "step":
                refused.append(1)
                raise RequestRefused("too-many", "too many requests wait for their answers")
            return await real(pool, act, *given)

        monkeypatch.setattr(WorkPool, "run", run)
        monkeypatch.setattr(live, "LOOK_S", 0.01)
        async with hub.looking(folder, stream=True) as watch, asyncio.timeout(30):
            while not watch.cursor:
                await watch.wait(1.0)

    with_hub(act)
    assert len(refused) == 3


def test_a_fault_ends_streams_and_is_written_down(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Mutation: the task dies, and streams wait for ever."""

    def fail(_: Follower) -> None:
        raise RecursionError("too deep")

    async def act(hub: Hub) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(Follower, "step", fail)
            async with hub.looking(folder, stream=True) as watch, asyncio.timeout(30):
                while watch.error is None:
                    await watch.wait(1.0)
        assert "RecursionError" in watch.error.message
        async with hub.looking(folder, stream=True) as another, asyncio.timeout(30):
            assert another is not watch
            while not another.cursor:
                await another.wait(1.0)

    with_hub(act)
    assert "too deep" in caplog.text


def test_room_is_made_for_the_next_experiment(folder: Path, tmp_path: Path) -> None:
    """Mutation: those that nobody follows keep others out; one that somebody follows is let go."""

    async def act(hub: Hub) -> None:
        async with hub.looking(folder, stream=True) as followed:
            for number in range(2 * live.MOST_WATCHED):
                await hub.watch(tmp_path / f"idle-{number}")
            assert hub.described()["experiments"] == live.MOST_WATCHED
            assert await hub.watch(folder) is followed

    with_hub(act)
