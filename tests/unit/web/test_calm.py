"""Answers that all get who ask within a while."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dispatcher.errors import StoreError
from dispatcher.web import calm
from dispatcher.web.calm import CalmAnswers

ONE, TWO = Path("/one"), Path("/two")


class Maker:
    """Makes answers, each of which takes so many seconds."""

    def __init__(self, takes_s: float = 0.0) -> None:
        self.now = 100.0
        self.takes_s = takes_s
        self.made = 0
        self.answers = CalmAnswers(lambda: self.now)

    async def make(self) -> bytes:
        await asyncio.sleep(0)
        self.made += 1
        self.now += self.takes_s
        return f"{self.made}".encode()

    async def ask(self, folder: Path = ONE) -> bytes:
        return await self.answers.of(folder, self.make)


def test_all_who_ask_within_a_while_get_one_answer() -> None:
    """Mutation: twenty who look have it made twenty times."""

    async def scene() -> None:
        maker = Maker()
        assert await asyncio.gather(*(maker.ask() for _ in range(20))) == [b"1"] * 20
        maker.now += calm.ANEW_S - 0.1
        assert await maker.ask() == b"1"
        maker.now += 0.2
        assert await maker.ask() == b"2"
        assert await maker.ask(TWO) == b"3"

    asyncio.run(scene())


def test_what_takes_long_is_made_seldom() -> None:
    async def scene() -> None:
        maker = Maker(takes_s=2.0)
        await maker.ask()
        maker.now += 2.0 * calm.ANEW_TIMES - 0.1
        assert await maker.ask() == b"1"
        maker.now += 0.2
        assert await maker.ask() == b"2"

    asyncio.run(scene())


def test_answers_are_few_and_faults_are_not_kept() -> None:
    async def scene() -> None:
        maker = Maker()
        for number in range(3 * calm.MOST):
            await maker.ask(Path(f"/{number}"))
        assert len(maker.answers) == calm.MOST

        async def fail() -> bytes:
            raise StoreError("the store cannot be read")

        with pytest.raises(StoreError):
            await maker.answers.of(ONE, fail)
        assert await maker.ask() == f"{maker.made}".encode()

    asyncio.run(scene())
