"""Remote roots without a network, and with faults on demand."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trial_runtime.weights.cache.cache import WeightsCache
from trial_runtime.weights.loading.loading import load
from trial_runtime.weights.remote.address import RemoteRoot
from trial_runtime.weights.remote.opening import open_filesystem
from trial_runtime.weights.remote.place import Place
from trial_runtime.weights.remote.pulling import pull
from trial_runtime.weights.remote.pushing import Pushed, push
from trial_runtime.weights.remote.record import Record, StoredFile
from trial_runtime.weights.remote.retrying import Persistence
from trial_runtime.weights.saving.saving import save
from trial_runtime.weights.storage.patience import Patience

State = dict[str, Any]


@pytest.fixture(autouse=True)
def as_below_an_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials whose root is remote are told so that they digest whole files."""
    monkeypatch.setenv("BEQUEATH_WEIGHTS_CACHE", "auto:0:")


class Faulty:
    """A file system of fsspec that fails when it is told to.

    ``plan`` maps a method to what it does instead, call by call; None lets a call pass.
    """

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.plan: dict[str, list[Callable[..., Any] | None]] = {}
        self.calls: list[tuple[str, str]] = []

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        if not callable(found) or name.startswith("_"):
            return found

        def call(*args: Any, **options: Any) -> Any:
            self.calls.append((name, " ".join(map(str, args))))
            steps = self.plan.get(name)
            instead = steps.pop(0) if steps else None
            return (found if instead is None else instead)(*args, **options)

        return call


def broken(*_args: Any, **_options: Any) -> Any:
    """A call that finds the connection gone."""
    raise ConnectionResetError(104, "Connection reset by peer")


@dataclass
class Lab:
    """Attempts that push and pull, each with a view of its own."""

    place: Place
    cache: WeightsCache
    folder: Path
    opened: Callable[[RemoteRoot], tuple[Any, str]]
    faulty: list[Faulty] = field(default_factory=list)

    @property
    def fs(self) -> Faulty:
        """The file system of the newest connection."""
        if not self.faulty:
            self.place.size("nothing")
        return self.faulty[-1]

    def view(self, name: str) -> str:
        """The folder of an attempt."""
        path = self.folder / "views" / name
        path.mkdir(parents=True, exist_ok=True)
        return str(path.resolve())

    def trained(
        self, attempt: str, state: State, parent: tuple[str, str] | None = None, path: str = ""
    ) -> Pushed:
        """Save a state in an attempt's view, with a parent pulled before, and push it."""
        view, path = self.view(attempt), path or f"t/{attempt.partition('.')[0]}"
        inherited: dict[str, StoredFile] = {}
        if parent is not None:
            record = self.pulled(attempt, *parent)
            inherited = {file.path: file for file in record.files}
        above = parent[0] if parent is not None else None
        published = save(state, path, parent=above, root=view, writer=attempt)
        return push(
            self.place,
            view,
            path,
            writer=attempt,
            inherited=inherited,
            announced=published.digest,
        )

    def pulled(self, attempt: str, path: str, digest: str, kind: Any = "bequeath") -> Record:
        """Lay weights down in an attempt's view."""
        return pull(
            self.place,
            self.cache,
            self.view(attempt),
            path,
            digest=digest,
            kind=kind,
            patience=Patience(0.0),
        )

    def loaded(self, attempt: str, path: str, digest: str) -> State:
        """Pull and load."""
        self.pulled(attempt, path, digest)
        return dict(load(path, digest=digest, root=self.view(attempt), stale_timeout_s=0.0))


@pytest.fixture(params=["memory", "file"])
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> Lab:
    """A remote root of either kind: one that takes uploads whole, one that renames."""
    if request.param == "memory":
        root = RemoteRoot(f"memory://{secrets.token_hex(4)}", {}, "lab-1")
    else:
        root = RemoteRoot(f"file://{tmp_path}/remote", {}, "lab-1")
    made: list[Faulty] = []

    def opened(asked: RemoteRoot) -> tuple[Any, str]:
        inner, base = open_filesystem(asked)
        plan = made[-1].plan if made else {}
        made.append(Faulty(inner))
        made[-1].plan = plan  # goes on with the next connection
        return made[-1], base

    place = Place(root, persistence=Persistence(0.0), opened=opened)
    return Lab(place, WeightsCache(str(tmp_path / "cache"), 1 << 30), tmp_path, opened, made)


def state(*changed: int, size: int = 500) -> State:
    """Three tensors, of which some are changed."""
    tensors = {f"w{i}": np.full(size, i, dtype=np.float32) for i in range(3)}
    for index in changed:
        tensors[f"w{index}"] = np.full(size, 100 + index, dtype=np.float32)
    return tensors


def assert_same(found: State, expected: State) -> None:
    """Equal, tensor by tensor."""
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        np.testing.assert_array_equal(found[name], tensor)
