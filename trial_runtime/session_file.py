"""The session file of an attempt, which ``BEQUEATH_SESSION`` names before its first line runs.

It holds a secret, so it is written with mode 0600 and never shown.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Optional

import msgspec

from trial_runtime.failpoints import failpoint
from trial_runtime.opening import create_private

if TYPE_CHECKING:
    from trial_runtime.api_errors import BrokenSession

SESSION_VARIABLE = "BEQUEATH_SESSION"

#: Names the folder that :func:`trial_runtime.checkpoint_dir` gives, for programs without Python.
CHECKPOINTS_VARIABLE = "BEQUEATH_CHECKPOINT_DIR"

#: Names the attempt of a process that cannot have a session of its own.
MARKER_VARIABLE = "BEQUEATH_ATTEMPT"


#: Marks all that an agent runs, whatever it forks: its value names the agent.
AGENT_VARIABLE = "BEQUEATH_AGENT"


class PinnedVersion(msgspec.Struct, frozen=True, array_like=True):
    """A version of a shared store that the trial reads.

    ``path`` is relative to the folder of the experiment's stores.
    """

    store: str
    number: int
    path: str
    digest: str


class SessionFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """One attempt, as its processes see it. Paths are absolute; sizes are bytes.

    ``routing`` is the prefix of this attempt's routing ids and carries its secret.
    ``call`` and ``code_directory`` are for trials that are functions.
    """

    version: int
    address: str
    routing: str
    trial: int
    attempt: int
    folder: str
    parameters: str  # JSON text
    seed: int = 0
    save_path: Optional[str] = None
    restore_path: Optional[str] = None
    restore_digest: Optional[str] = None
    restore_kind: Optional[str] = None
    weights_root: Optional[str] = None
    read_roots: tuple[str, ...] = ()
    call: str = ""
    code_directory: str = ""
    max_metric_bytes: int = 64 << 10
    experiment: str = ""
    stale_timeout_s: float = 75.0
    checkpoints: Optional[str] = None  # the trial's folder for all of its attempts
    work_folder: str = ""  # where its process begins; in the code directory, if empty
    devices: tuple[str, ...] = ()  # ids of the GPUs it may use, where GPUs are counted
    variables: dict[str, str] = {}  # of its environment, beyond what all trials share
    cores: tuple[int, ...] = ()  # that it is pinned to; all, if empty
    cgroup: str = ""  # the control group (a folder) that its process joins
    stores: str = ""  # the folder of the experiment's shared stores; empty: there are none here
    versions: tuple[PinnedVersion, ...] = ()  # of them, that it reads

    @property
    def from_store(self) -> bool:
        """Whether it starts from a version of a shared store."""
        within = f"{os.path.realpath(self.stores)}/" if self.stores else ""
        return bool(within) and (self.restore_path or "").startswith(within)

    def __repr__(self) -> str:
        return f"SessionFile({self.trial}.{self.attempt})"  # its secret is nobody's business


SESSION_VERSION = 1
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(SessionFile)


def write_session(path: str, session: SessionFile) -> None:
    """Write a session file that only its owner can read."""
    descriptor = create_private(path)
    try:
        left = memoryview(_encoder.encode(session))
        while left:
            left = left[os.write(descriptor, left) :]
    finally:
        os.close(descriptor)
    failpoint("agent.session.written")


def remove_session(path: str) -> None:
    """Remove the session file of an attempt that is over, and with it the secret."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def encode_session(session: SessionFile) -> bytes:
    """The content of a session file."""
    return _encoder.encode(session)


def decode_session(content: bytes | msgspec.Raw) -> SessionFile:
    """Read the content of a session file.

    Raises:
        BrokenSession: it is not one, or of another version.
    """
    try:
        session = _decoder.decode(content)
    except msgspec.MsgspecError as error:
        raise _broken(f"not a session file: {error}") from error
    if session.version != SESSION_VERSION:
        raise _broken(
            f"session version {session.version}, where {SESSION_VERSION} is understood",
            hint="the trial's Python has another bequeath than the agent; install the same",
        )
    return session


def read_session(path: str) -> SessionFile:
    """Read a session file; raises :class:`BrokenSession`."""
    try:
        content = _content_of(path)
    except OSError as error:
        raise _broken(
            f"cannot read the session file: {error.strerror}",
            hint=f"unset {SESSION_VARIABLE} to run this script by hand",
            where=path,
        ) from error
    return decode_session(content)


def _content_of(path: str) -> bytes:
    """The bytes of a file, without a file object: a forked trial would copy more pages for it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        content = b""
        while chunk := os.read(descriptor, 1 << 20):
            content += chunk
        return content
    finally:
        os.close(descriptor)


def _broken(message: str, *, hint: str = "", where: str = "") -> BrokenSession:
    """An error whose module is imported only now: else every trial would pay for it."""
    from trial_runtime.api_errors import BrokenSession

    return BrokenSession(message, hint=hint, where=where)
