"""An agent in a storage domain that its head does not see: it lays a token down, and says it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tests.unit.trial_runtime.test_probing import CONFIG
from trial_runtime.agent.base.loop import Timers
from trial_runtime.agent.config import AgentConfig
from trial_runtime.agent.link.probing import RootProbe, looks_at_root
from trial_runtime.weights.remote.address import RemoteRoot
from trial_runtime.weights.storage.share import lay_token


class Helper:
    """Looks at once."""

    def submit(self, job: Callable[[], Any], done: Callable[[Any, Exception | None], None]) -> None:
        done(job(), None)


def look(config: AgentConfig) -> tuple[list[str], list[str]]:
    """What is told, and which token is found."""
    told: list[str] = []
    found: list[str] = []
    settings = {"patience_s": 0.0}
    RootProbe(config, Helper(), Timers(), told.append, found.append, **settings).look()  # type: ignore[arg-type]
    return told, found


def test_who_has_to_look() -> None:
    assert looks_at_root(CONFIG)
    assert not looks_at_root(replace(CONFIG, root_token=""))
    lake = replace(CONFIG, root_token="", domain="lake")
    assert looks_at_root(lake)
    assert not looks_at_root(replace(lake, remote=RemoteRoot("s3://b", {}, ""))), "a store has none"


def test_the_first_lays_the_token_down_and_says_it(tmp_path: Path) -> None:
    root = tmp_path / "lake"
    told, found = look(replace(CONFIG, root_token="", domain="lake", weights_root=str(root)))
    assert told == [""]
    assert found == [lay_token(str(root))]
    assert look(replace(CONFIG, root_token=found[0], weights_root=str(root))) == ([""], [])


def test_another_folder_is_another_share(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for each in (here, there):
        each.mkdir()
    token = lay_token(str(here))
    lay_token(str(there))
    (told,), found = look(replace(CONFIG, root_token=token, weights_root=str(there)))
    assert "is another share than" in told
    assert found == []


def test_a_root_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    root = str(tmp_path / "file" / "lake")
    (told,), _ = look(replace(CONFIG, root_token="", domain="lake", weights_root=root))
    assert told == f"the weights root {root} takes no files: Not a directory"
