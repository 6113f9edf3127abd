"""Wherever a trial's weights come from, what it saves depends on nothing that others take away.

Only another trial's weights are referred to: these are kept for as long as anybody does. Versions
of shared stores, plain files and pretrained weights go by rules of their own, so that all a trial
saves of them is written anew.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trial_runtime as t
from trial_runtime import session, weights
from trial_runtime.session_file import SESSION_VERSION, SessionFile
from trial_runtime.weights.read.plain import digest_tree
from trial_runtime.weights.storage import roots

TRIAL = 7


def state() -> dict[str, Any]:
    return {"body": np.arange(4096.0), "head": np.ones(7), "epoch": 3}


@dataclass
class Place:
    """Where the experiment keeps what; ``told`` is what a trial's session says of it."""

    folder: Path
    root: Path
    told: dict[str, Any] = field(default_factory=dict)


def _published(path: Path, root: Path) -> str:
    return weights.save(state(), path, root=str(root), writer="1.1").digest


def nowhere(place: Place) -> Path | None:
    return None


def another_trial(place: Place) -> Path:
    path = place.root / "1"
    place.told = {"restore_digest": _published(path, place.root), "restore_kind": "bequeath"}
    return path


def a_version(place: Place) -> Path:
    stores = Path(place.told["stores"])
    path = stores / "omega" / "1.1-0a"
    path.parent.mkdir(parents=True)
    digest = _published(path, stores)
    place.told |= {"restore_digest": digest, "restore_kind": "bequeath"}
    return path


def a_version_below_the_root(place: Place) -> Path:
    place.told = {"stores": str(place.root / ".stores" / "e")}
    return a_version(place)


def a_version_elsewhere(place: Place) -> Path:
    place.told = {"stores": str(place.folder / "view" / ".stores")}
    return a_version(place)


def plain_files(place: Place) -> Path:
    made = place.folder / "made"
    _published(made, place.folder)
    path = place.root / "1"
    path.mkdir()
    weights.export(made, path / "net.safetensors", root=str(place.folder))
    place.told = {"restore_digest": digest_tree(str(path)).digest, "restore_kind": "files"}
    return path


def pretrained(place: Place) -> Path:
    given = place.folder / "given"
    _published(given / "net", given)
    place.told = {"read_roots": (str(given),)}
    return given / "net"


PLACES = [
    nowhere,
    another_trial,
    a_version_below_the_root,
    a_version_elsewhere,
    plain_files,
    pretrained,
]


class Told(session.AgentSession):
    """A session whose agent hears what was published, and no more."""

    def __init__(self, file: SessionFile) -> None:
        super().__init__(file)
        self.announced: list[str] = []

    def published(self, digest: str, kind: Any, nbytes: int) -> None:
        self.announced.append(digest)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    root = tmp_path / "weights"
    root.mkdir()
    yield Place(tmp_path, root)
    session.adopt(None)
    roots.forget()


def _begin(place: Place, whence: Path | None) -> Told:
    told = Told(
        SessionFile(
            SESSION_VERSION,
            "",
            "",
            TRIAL,
            1,
            str(place.folder),
            "{}",
            weights_root=str(place.root),
            save_path=str(place.root / str(TRIAL)),
            restore_path=None if whence is None else str(whence),
            stale_timeout_s=0.0,
            **place.told,
        )
    )
    session.adopt(told)
    return told


@pytest.mark.parametrize("come", PLACES)
def test_what_is_saved_outlives_where_it_came_from(place: Place, come: Any) -> None:
    whence = come(place)
    told = _begin(place, whence)
    file = (whence / "net.safetensors") if come is plain_files and whence else None
    loaded = t.load_weights(path=file)
    if whence is None:
        assert loaded is None
    else:
        assert np.array_equal(loaded["body"], state()["body"])

    own = place.root / str(TRIAL)
    changed = {**state(), "head": np.full(7, 2.0)}
    for epoch in (4, 5):  # a trial may save again and again
        assert t.save_weights({**changed, "epoch": epoch}) == os.path.realpath(own)
        manifest = weights.read_manifest(own, root=str(place.root))
        elsewhere = {entry.file for entry in manifest.tensors.values() if "/" in entry.file}
        inherits = come is another_trial
        assert bool(elsewhere) == inherits, f"it refers to {elsewhere}"
        if whence is not None and not inherits:
            assert whence.exists()
        weights.verify(own, told.announced[-1], root=str(place.root), stale_timeout_s=0.0)

    if whence is not None and come is not another_trial:
        shutil.rmtree(whence)
    back = weights.load(own, digest=told.announced[-1], root=str(place.root), stale_timeout_s=0.0)
    assert back["epoch"] == 5
    for name in ("body", "head"):
        assert np.array_equal(back[name], changed[name])
