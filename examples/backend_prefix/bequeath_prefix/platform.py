"""The platform itself: a way to run Python behind a prefix, and where its agent lives."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from msgspec.structs import replace

import trial_runtime
from bequeath_prefix.section import PlaceSection, PrefixSection
from dispatcher.platforms.protocol import (
    AgentConfig,
    AgentPlatform,
    AttemptFiles,
    AttendedVisit,
    Called,
    Given,
    PassingBackendError,
    PermanentBackendError,
    Reach,
    Told,
    Visit,
    files_in,
)


class PrefixVisit(AttendedVisit):
    """There is no connection: each order is one command. Whoever is behind the prefix shares this
    machine's file system, so that nothing has to be brought there."""

    def __init__(self, given: Given[PrefixSection]) -> None:
        super().__init__(given.worker)
        assert isinstance(given.part, PlaceSection)
        self._place = given.part
        self._home = given.home

    def call(self, arguments: Sequence[str], stdin: bytes, limit_s: float) -> Called:
        """The prefix, Python, its arguments: a list, and no shell."""
        words = [*self._place.prefix, self._place.python, *arguments]
        ours = str(Path(trial_runtime.__file__).parent.parent)
        environment = {**os.environ, "PYTHONPATH": ours}
        try:
            ran = subprocess.run(
                words, input=stdin, capture_output=True, timeout=limit_s, env=environment
            )
        except FileNotFoundError as error:
            raise PermanentBackendError(
                f"there is no program {error.filename!r} here", where=self.place
            ) from error
        except subprocess.TimeoutExpired as error:
            raise PassingBackendError(
                f"{words[0]} took longer than {limit_s:.0f} s", where=self.place
            ) from error
        return Called(ran.returncode, ran.stdout, ran.stderr)

    def told(self, config: AgentConfig) -> Told:
        """A folder of its own, so that it keeps to itself what it runs."""
        return Told(replace(config, experiment_folder=self.folder(config), run_folder=""), {})

    def folder(self, config: AgentConfig) -> str:
        """Below the experiment's."""
        return str(self._home)


class PrefixPlatform(AgentPlatform[PrefixSection]):
    """What the entry point names."""

    protocol = 2
    section = PrefixSection
    reach: ClassVar[Reach] = "socket"  # it is this machine

    def visit(self, given: Given[PrefixSection]) -> Visit:
        """One visit."""
        return PrefixVisit(given)

    def files(self, given: Given[PrefixSection], trial: int, attempt: int) -> AttemptFiles | None:
        """Its trials' files lie on this machine."""
        return files_in(given, given.home, trial, attempt)


PREFIX = PrefixPlatform()
