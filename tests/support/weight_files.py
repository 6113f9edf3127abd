"""Weights of a simulated world as files: saves, loads and what is set aside are the product's, and
a save is made in steps between which anything may happen.

A save runs in a thread that stands still at lines drawn by dice, so that it may be under way while
its agent dies, while its attempt is given up, and while the attempt after it saves to the same
path. Each tensor says which save of which attempt it is of (``Mark``); so what a child has loaded
can be compared with what the head committed, tensor by tensor.

Digests are random (a manifest names the time, its data file has a random name). The head is told a
name that is the same each time the seed is lived through, and what it orders is translated back.
"""

from __future__ import annotations

import json
import linecache
import os
import random
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from dispatcher.core.resources import WorkerRules
from tests.support.witnesses import Contents, Loaded, Mark
from trial_runtime import facts, wire
from trial_runtime.agent.attempts.leftovers import weights_left_by
from trial_runtime.agent.attempts.preparing import Unpreparable, make_room, verify_parent
from trial_runtime.errors import WeightsError
from trial_runtime.weights import load, save
from trial_runtime.weights.format import hashing
from trial_runtime.weights.format.manifest import MANIFEST_NAME
from trial_runtime.weights.saving import saving
from trial_runtime.weights.storage import publishing

if TYPE_CHECKING:
    from tests.support.agents import Host
    from tests.support.world import World

#: How likely a save stands still at a line of these files.
PAUSES = 0.06
_TRACED = frozenset((saving.__file__, publishing.__file__))

#: Files of weights that a trial writes by its own means, one after the other.
PLAIN = ("a", "b")


def _array(mark: Mark, length: int) -> Any:
    """A tensor of that save."""
    return np.full((length, 3), mark, dtype=np.int64)


def _mark(array: Any) -> Mark:
    marks = {Mark(*map(int, row)) for row in array}
    assert len(marks) == 1, f"one tensor of several saves: {marks}"
    return marks.pop()


class _Over(BaseException):
    """The world is over: a save that its process did not outlive goes no further."""


class Saver:
    """One save, in a thread that stands still now and then."""

    def __init__(
        self, work: Callable[[], Any], path: str, told: str, mark: Mark, dice: random.Random
    ) -> None:
        self._work, self._dice = work, dice
        self.path, self.mark = path, mark
        self.path_told = told  # as the tuner has it
        self._go, self._stands = threading.Semaphore(0), threading.Semaphore(0)
        self._killed = False
        self.over = False
        self.digest = ""
        self.error: BaseException | None = None
        self.evicted = False  # its folder was set aside: what it writes must go there
        self.raced = False  # it had looked for the last time when somebody else published
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def step(self) -> bool:
        """Go on to where it stands still next; whether it is over."""
        if not self.over:
            self._go.release()
            self._stands.acquire()
        return self.over

    def end(self) -> None:
        """Be gone."""
        self._killed = True
        self.step()
        self._thread.join()

    def frame(self, function: str) -> FrameType | None:
        """Where it stands in that function, if it does."""
        at = sys._current_frames().get(self._thread.ident or 0)
        while at is not None and at.f_code.co_name != function:
            at = at.f_back
        return at

    @property
    def has_folder(self) -> bool:
        """Whether it holds the folder that it writes into."""
        at = self.frame("save_once")
        return at is not None and "at" in at.f_locals

    @property
    def has_looked(self) -> bool:
        """Whether it publishes next, and looks no more whether somebody else did. A look is over
        once it has read that there is nothing, before it has come back with that: the first of
        the two in a save decides nothing, since the second comes after it."""
        at = self.frame("save_once")
        if at is None:
            return False
        if "publish_manifest(" in linecache.getline(saving.__file__, at.f_lineno):
            return True
        looks = self.frame("_published_before")
        if looks is None or "manifest" not in at.f_locals:
            return False
        return looks.f_locals.get("raw", b"") is None

    def _run(self) -> None:
        self._go.acquire()
        sys.settrace(self._trace)
        try:
            if not self._killed:
                self.digest = self._work()
        except _Over:
            pass
        except Exception as error:  # noqa: BLE001 - whatever it is, its trial fails of it
            self.error = error
        finally:
            sys.settrace(None)
            self.over = True
            self._stands.release()

    def _trace(self, frame: FrameType, _event: str, _arg: Any) -> Any:
        return self._line if frame.f_code.co_filename in _TRACED else None

    def _line(self, _frame: FrameType, event: str, _arg: Any) -> Any:
        if event == "line" and not self._killed and self._dice.random() < PAUSES:
            self._stands.release()
            self._go.acquire()
            if self._killed:
                raise _Over
        return self._line


class WeightFiles:
    """The weights roots of a world, one for each storage domain."""

    def __init__(self, world: World, folder: Path) -> None:
        self._world = world
        self._folder = folder
        self._names: dict[str, str] = {}  # of digests, as the head hears them
        self._digests: dict[str, str] = {}  # by that name
        self._contents: dict[str, Contents] = {}
        self._kinds: dict[str, str] = {}  # of those that an agent has found
        self._base: dict[tuple[int, int], Mark] = {}  # what an attempt passes on as it got it
        self._savers: list[Saver] = []
        self._newest: dict[str, int] = {}  # attempt for which room was made, by path
        self._ran: dict[str, set[str]] = {}  # where attempts ran
        self._mixed: set[str] = set()  # paths that a superseded trial wrote to by its own means
        self._raced: set[str] = set()  # at which two manifests appeared at once
        self.loads: list[Loaded] = []
        self.accidents = world.odds.save_accidents  # that are still to befall somebody who saves

    def close(self) -> None:
        """No save goes on."""
        for saver in self._savers:
            saver.end()

    def root(self, host: Host) -> str:
        """The folder that a host has as its weights root."""
        rules = self._world.case.settings.worker_rules.get(host.name, WorkerRules())  # type: ignore[call-overload]
        root = self._folder / f"weights {rules.domain}"
        root.mkdir(exist_ok=True)
        return os.path.realpath(root)

    def _wrong(self, text: str) -> None:
        self._world.faults.append(text)

    # -- before an attempt ----------------------------------------------------------------------

    def make_room(self, host: Host, order: facts.StartAttempt) -> str:
        """The save path is made free; why it cannot be."""
        assert order.save_path is not None
        path = os.path.join(self.root(host), order.save_path)
        before = [s for s in self._savers if s.path == path and s.has_folder and not s.over]
        try:
            make_room(path, order.attempt)
        except Unpreparable as error:
            return str(error)
        for saver in before:
            saver.evicted = True
        self._newest[path] = order.attempt
        self._ran.setdefault(f"{order.trial}.{order.attempt}", set()).add(host.name)
        self._mixed.discard(path)
        self._raced.discard(path)
        return ""

    def load(self, host: Host, order: facts.StartAttempt) -> str:
        """A child reads its parent's weights; why it cannot."""
        assert order.restore_path is not None, "asked for children only"
        assert order.restore_digest is not None, "asked for children only"
        root, name = self.root(host), f"{order.trial}.{order.attempt}"
        path = os.path.join(root, order.restore_path)
        digest = self._digests.get(order.restore_digest)
        if digest is None:
            self._wrong(f"{name} is to find weights that nobody saved: {order.restore_digest}")
            return "nothing of that digest"
        try:
            found = self._read(path, root, digest, order.restore_kind)
        except (WeightsError, Unpreparable) as error:
            if path not in self._raced | self._mixed and not self._later_save(path, order):
                self._wrong(f"{name} cannot have its parent's weights: {error}")
            return str(error)
        self.loads.append(
            Loaded(order.trial, order.attempt, order.restore_path, order.restore_digest, found)
        )
        self._world.note(f"{name} has its parent's weights: {order.restore_digest}")
        if found != self._contents[order.restore_digest]:
            self._wrong(f"{name} has loaded {found}, saved as {order.restore_digest} (promise 7)")
        if order.restore_kind == "bequeath":
            self._base[order.trial, order.attempt] = found["base"]
        return ""

    def _later_save(self, path: str, order: facts.StartAttempt) -> bool:
        """Whether the parent's own attempt has saved once more after it was given up with the
        result and the weights that it had told: what it told then is nowhere any more."""
        assert order.restore_digest is not None, "asked for children only"
        told = self._contents[order.restore_digest].get("w")
        return (
            told is not None
            and self._manifest(path)[0] == told.author
            and any(harm.worker in self._ran.get(told.author, ()) for harm in self._world.harms)
        )

    def _read(self, path: str, root: str, digest: str, kind: str | None) -> Contents:
        if kind == "files":
            told = SimpleNamespace(
                restore_kind=kind, restore_path=path, restore_digest=digest, stale_timeout_s=0.0
            )
            verify_parent(told)  # type: ignore[arg-type]
            return self._plain(path)
        arrays = load(path, digest=digest, root=root, stale_timeout_s=0.0, framework="numpy")
        return {tensor: _mark(array) for tensor, array in arrays.items()}

    def _plain(self, path: str) -> Contents:
        files = (Path(path, name) for name in PLAIN)
        return {
            file.name: Mark(*map(int, file.read_text(encoding="ascii").split(".")))
            for file in files
            if file.exists()
        }

    # -- saves ----------------------------------------------------------------------------------

    def save(self, host: Host, order: facts.StartAttempt, number: int) -> Saver:
        """A save that has not begun. Part of what an attempt has inherited it passes on."""
        assert order.save_path is not None
        key = (order.trial, order.attempt)
        root, mark = self.root(host), Mark(order.trial, order.attempt, number)
        path, base = os.path.join(root, order.save_path), self._base.get(key)
        ours = base is not None and order.restore_digest is not None
        state = {"w": _array(mark, 40), "head": _array(mark, 7), "base": _array(base or mark, 20)}
        parent = os.path.join(root, order.restore_path or "") if ours else None
        parent_digest = self._digests[order.restore_digest or ""] if ours else None

        def work() -> str:
            return save(
                state,
                path,
                root=root,
                writer=mark.author,
                parent=parent,
                parent_digest=parent_digest,
            ).digest

        self._contents[mark.text] = {"w": mark, "head": mark, "base": base or mark}
        dice = random.Random(f"save {self._world.case.seed} {mark}")
        saver = Saver(work, path, order.save_path, mark, dice)
        self._savers.append(saver)
        return saver

    def go_on(self, saver: Saver) -> bool:
        """One step of a save; whether it is over. Whose folder was set aside, and who comes after a
        successor, changes nothing."""
        before, (writer, _) = self._listing(saver.path), self._manifest(saver.path)
        over = saver.step()
        if saver.evicted:
            self._world.note(f"a save of {saver.mark.author} goes on in what was set aside")
        if saver.evicted and self._listing(saver.path) != before:
            self._wrong(f"{saver.mark} writes to what was set aside, and {saver.path} changes")
        own, (now, raw) = saver.mark.author, self._manifest(saver.path)
        if now == own or saver.digest:
            self._known(saver.digest or hashing.digest(raw), saver.mark)
        if now == own != writer:
            for other in self._savers:
                if other.path == saver.path and other is not saver and other.has_looked:
                    other.raced = True
            if writer and saver.raced:  # nothing prevents that; what is there now is not believed
                self._raced.add(saver.path)
                self._world.note(f"{own} replaces the weights of {writer}")
            elif writer:
                self._wrong(f"{own} replaces the weights of {writer} (promise 7)")
        return over

    def _known(self, digest: str, mark: Mark) -> None:
        if digest not in self._names:
            self._digests[mark.text], self._names[digest] = digest, mark.text

    def _listing(self, path: str) -> list[tuple[str, int]]:
        try:
            return sorted((each.name, each.inode()) for each in os.scandir(path))
        except FileNotFoundError:
            return []

    def _manifest(self, path: str) -> tuple[str, bytes]:
        """Who has published there, and what."""
        try:
            raw = Path(path, MANIFEST_NAME).read_bytes()
        except FileNotFoundError:
            return "", b""
        return json.loads(raw)["writer"], raw

    def is_plain(self, trial: int) -> bool:
        """Whether a trial's code writes its weights by its own means."""
        return random.Random(f"plain {self._world.case.seed} {trial}").random() < 0.2

    def write_plain(self, host: Host, order: facts.StartAttempt, name: str) -> None:
        """One file, as any program writes it."""
        path = os.path.join(self.root(host), order.save_path or "")
        mark = Mark(order.trial, order.attempt, 1)
        os.makedirs(path, exist_ok=True)
        Path(path, name).write_text(".".join(map(str, mark)), encoding="ascii")
        if order.attempt < self._newest[path]:
            self._mixed.add(path)  # nobody can tell whose file that is

    # -- after an attempt -----------------------------------------------------------------------

    def left(self, host: Host, order: facts.StartAttempt, announced: str) -> str:
        """What its agent finds at the save path of an attempt that is over, if that was not
        told."""
        root = self.root(host)
        path = os.path.join(root, order.save_path or "")
        published = None
        if announced:
            published = wire.PublishedMessage(self._digests[announced], "bequeath", 10)
        attempt = SimpleNamespace(
            session=SimpleNamespace(save_path=path, weights_root=root),
            published=published,
            start=order,
            trial=order.trial,
            number=order.attempt,
        )
        try:
            found = weights_left_by(attempt, None)  # type: ignore[arg-type]
        except (WeightsError, OSError):
            return ""
        if found is None or (found.kind == "files" and self._is_mixed(path, order, found.digest)):
            return ""
        name = self._names.get(found.digest)
        if name is None:
            self._wrong(f"the agent of {order.trial}.{order.attempt} finds what nobody has saved")
            return ""
        self._kinds[name] = found.kind
        own = f"{order.trial}.{order.attempt}"
        if name.rstrip("+") != own and order.attempt == self._newest[path]:
            self._wrong(f"the agent of {own} takes {name} for its weights (promise 7)")
        return name

    def kind_of(self, name: str) -> str:
        """Of weights that an agent has found."""
        return self._kinds[name]

    def _is_mixed(self, path: str, order: facts.StartAttempt, digest: str) -> bool:
        """Whether somebody else's files are among plain ones: of one that was superseded, which
        nobody can tell from the attempt's own. No digest helps, and none is promised to."""
        found = self._plain(path)
        mark = Mark(order.trial, order.attempt, 1)
        if any(each != mark for each in found.values()):
            if path not in self._mixed and order.attempt == self._newest[path]:
                self._wrong(f"{mark.author} has left {found} (promise 7)")
            return True
        self._known(digest, mark)
        self._contents[mark.text] = found
        return False
