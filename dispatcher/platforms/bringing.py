"""Brings our runtime, the trials' code and wheels to allocations: once for each version.

The archives lie in a folder that allocations see, each under its digest, which is in the agent's
configuration. There :mod:`trial_runtime.begin` looks at the digest, unpacks what is missing, and
asks by a file for wheels of modules that its Python lacks: only it knows which ones fit.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec.structs import replace

from dispatcher.codec import UNREADABLE
from dispatcher.errors import BackendError, PermanentBackendError
from dispatcher.platforms.archives import Archive, Archives
from dispatcher.remote_python.probed import PythonFacts
from dispatcher.wheelhouse import USEFUL, HostPython, WheelsMissing, plan
from trial_runtime import begin
from trial_runtime.agent.config import AgentConfig, Brought, BroughtArchive, BroughtWheel
from trial_runtime.agent.processes.record import write_private

#: The folder of archives and trees below the one that is shared. Experiments' names have no dot.
FOLDER = ".brought"

#: A question is short; questions that are looked at in one turn.
MOST_BYTES, MOST_QUESTIONS = 64 << 10, 1000

#: Longest line about an agent that cannot run.
MOST_TEXT = 600

_log = logging.getLogger("bequeath.backends.bringing")


class WheelQuestion(msgspec.Struct, frozen=True):
    """A question of :func:`trial_runtime.begin.ask_for_wheels`."""

    python: PythonFacts
    version: tuple[int, int, int]
    executable: str
    missing: dict[str, str]
    versions: dict[str, str]


class _Asked(msgspec.Struct, frozen=True):
    question: WheelQuestion | None = None


class WheelAnswer(msgspec.Struct, frozen=True):
    """The answer to a question; ``problem``: why trials cannot run with that Python."""

    wheels: tuple[BroughtWheel, ...] = ()
    problem: str = ""


class SharedFolder:
    """Brings things through a folder that is at the same path here and there.

    Args:
        shared: the folder that the experiment file names.
        archives: packs them, at its first call. Raises ``BackendError``.
    """

    def __init__(self, shared: Path, archives: Callable[[], Archives]) -> None:
        self._folder = shared / "bequeath" / FOLDER
        self._pack = archives
        self._laid: Brought | None = None
        self._thread: threading.Thread | None = None

    @property
    def begin(self) -> str:
        """The file with which a Python there begins an agent."""
        content = begin_content()
        return str(self._folder / f"begin-{hashlib.sha256(content).hexdigest()[:16]}.py")

    def bring(self, config: AgentConfig) -> AgentConfig:
        """Lay everything down, if it is not there, and name it in an agent's configuration. Blocks.

        Raises:
            PermanentBackendError: the folder cannot be used, or the code cannot be packed.
        """
        if self._laid is None or not self._is_there(self._laid):
            try:
                self._laid = self._lay_out(self._pack())
            except OSError as error:
                raise PermanentBackendError(
                    f"cannot bring code to allocations: {error.strerror or error}",
                    where=str(error.filename or self._folder),
                ) from error
        return with_brought(config, self._laid)

    def _is_there(self, laid: Brought) -> bool:
        """Whether nobody has removed what was laid down."""
        archives = [f"{laid.archives}/{each.digest}.tar" for each in (laid.runtime, laid.code)]
        return all(map(os.path.isfile, [self.begin, *archives]))

    def _lay_out(self, archives: Archives) -> Brought:
        places = (self._folder, self._folder / "archives", self._folder / "asks")
        for place in places:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            if trouble := begin.folder_trouble(str(place)):
                raise PermanentBackendError(
                    f"code is not put where others can change it: {trouble}",
                    hint="name a 'sharedFolder' of your own",
                    where=str(place),
                )
        if not os.path.lexists(self.begin):
            write_private(Path(self.begin), begin_content())
        laid = [self._lay(each) for each in (archives.runtime, archives.code)]
        folder, inside, asks = map(str, places)
        return Brought(archives=inside, work=folder, runtime=laid[0], code=laid[1], asks=asks)

    def _lay(self, archive: Archive) -> BroughtArchive:
        nbytes = lay(archive.path, archive.digest, self._folder / "archives", ".tar")
        return BroughtArchive(archive.digest, nbytes)

    # -- wheels ----------------------------------------------------------------------------------

    @property
    def is_answering(self) -> bool:
        """Whether questions are being answered."""
        return self._thread is not None and self._thread.is_alive()

    def look(self) -> None:
        """Look for questions, and have them answered: pip may take minutes. Does not block."""
        if self._laid is None or self.is_answering:
            return
        asked = self._asked()
        if asked:
            self._thread = threading.Thread(
                target=self._answer_all, args=(asked,), name="wheels", daemon=True
            )
            self._thread.start()

    def _asked(self) -> list[Path]:
        with contextlib.suppress(OSError):
            names = sorted(os.listdir(self._folder / "asks"))
            asks = [self._folder / "asks" / name for name in names if name.startswith("wheels-")]
            return [path for path in asks[:MOST_QUESTIONS] if question_in(path) is not None]
        return []

    def _answer_all(self, asked: list[Path]) -> None:
        """WheelAnswer questions. Thread: one of its own."""
        for path in asked:
            question = question_in(path)
            if question is None:
                continue
            try:
                answer = self._answer(question)
            except BackendError as error:
                answer = WheelAnswer(
                    problem=error.message + (f" ({error.hint})" if error.hint else "")
                )
            except OSError as error:
                answer = WheelAnswer(
                    problem=f"wheels cannot be laid down: {error.strerror or error}"
                )
            with contextlib.suppress(OSError):  # whoever asked has left
                write_over(path, msgspec.json.encode({"answer": answer}))

    def _answer(self, question: WheelQuestion) -> WheelAnswer:
        facts = question.python
        host = HostPython(
            question.version[:2],
            facts.implementation,
            facts.cpu,
            facts.libc,
            facts.libc_version,
            facts.gpus,
        )
        planned = plan(host, question.missing, question.versions)
        if problem := planned.problem(question.executable, host):
            return WheelAnswer(problem=problem)
        wheels, cache = planned.wheels, self._pack().wheels
        try:
            files = cache.get(wheels.values(), host)
        except WheelsMissing:
            wheels = {name: each for name, each in wheels.items() if name not in USEFUL}
            files = cache.get(wheels.values(), host)
        laid = []
        for (module, wheel), path in zip(wheels.items(), files, strict=True):
            nbytes = lay(path, wheel.digest, self._folder / "archives", ".whl")
            _log.info("%s: brings %s", question.executable, path.name)
            laid.append(BroughtWheel(module, wheel.digest, nbytes, module in planned.first))
        return WheelAnswer(tuple(laid))


class Bringing(Protocol):
    """The keys of a section by which code is brought through a shared folder."""

    @property
    def bring_code(self) -> bool: ...
    @property
    def shared_folder(self) -> Path | None: ...


def bringing_of(section: Bringing, archives: Callable[[], Archives]) -> SharedFolder | None:
    """Return what brings code for a section; None if code is there already."""
    shared = section.shared_folder
    return SharedFolder(shared, archives) if section.bring_code and shared is not None else None


def begin_content() -> bytes:
    """The file that begins an agent."""
    return Path(begin.__file__).read_bytes()


def with_brought(config: AgentConfig, brought: Brought) -> AgentConfig:
    """The configuration of an agent that begins by :mod:`trial_runtime.begin`. Trials get working
    directories of their own: the code is everybody's.

    Args:
        config: as it would be with all of that at its place.
        brought: what is brought.
    """
    trial = replace(config.trial, code_directory=brought.code_folder, own_folders=True)
    return replace(config, brought=brought, runtime=brought.runtime_folder, trial=trial)


def lay(path: Path, digest: str, folder: Path, ending: str) -> int:
    """Copy a file into a folder under its digest, where it appears whole; returns its size.

    Args:
        path: the file.
        digest: of its content.
        folder: the one to copy it to.
        ending: of its name.

    Raises:
        OSError: it cannot be.
    """
    nbytes = path.stat().st_size
    target = folder / f"{digest}{ending}"
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISREG(os.lstat(target).st_mode) and _digest_of(target) == digest:
            return nbytes
    handle, new = tempfile.mkstemp(prefix=".new-", dir=folder)
    try:
        with open(handle, "wb") as out, open(path, "rb") as file:
            shutil.copyfileobj(file, out, 1 << 20)
            out.flush()
            os.fsync(out.fileno())
        os.rename(new, target)
    except BaseException:
        os.unlink(new)
        raise
    return nbytes


def unfit_path(config: Path) -> Path:
    """The file in which :mod:`trial_runtime.begin` says why no agent runs, beside its
    configuration."""
    return config.with_name(f"{config.name}.unfit")


def why_unfit(config: Path) -> str:
    """Why no agent runs there, in a line for people; empty if that was not said."""
    content = _read(unfit_path(config)) or b""
    return " ".join(content[:MOST_TEXT].decode(errors="replace").split())


def _read(path: Path) -> bytes | None:
    """The content of a plain file, at most so much that it is known to be too much."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            return file.read(MOST_BYTES + 1)
    except OSError:
        return None


def _digest_of(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def question_in(path: Path) -> WheelQuestion | None:
    """The question in a file; None if it has been answered, has gone, or is none."""
    content = _read(path)
    if content is None or len(content) > MOST_BYTES:
        return None
    try:
        return msgspec.json.decode(content, type=_Asked).question
    except UNREADABLE:
        return None


def write_over(path: Path, content: bytes) -> None:
    """Write a file anew that is there, in its place: who waits for it opens it again and again."""
    with open(os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_TRUNC), "wb") as file:
        file.write(content)
