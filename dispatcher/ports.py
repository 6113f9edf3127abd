"""The Protocols at which the rooms meet; :mod:`dispatcher.head.led_experiment` joins them.

All methods are called by the engine's one thread, which must never wait: what cannot be
done at once is queued by the port, or reported as an event later.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from dispatcher.core.actions import TunerAction, WorkerAction
from dispatcher.core.events import Event
from dispatcher.core.model import State, Trial
from dispatcher.errors import InternalError, InvalidTransition


class JournalEntry(NamedTuple):
    """One event with its time (seconds since the epoch, UTC); ``counted`` is false for an event of
    a superseded attempt, which is kept and not counted. ``worker`` is where an attempt ran when
    its event came, which later events of the same batch may have changed."""

    at: float
    event: Event
    counted: bool = True
    worker: str | None = None


class JournalRow(NamedTuple):
    """One journalled event as it is read back; ``number`` grows by one per row."""

    number: int
    at: float
    event: Event


class Frame(NamedTuple):
    """The place of an event: in which message of its peer, and which one of how many there."""

    message: int
    place: int
    many: int


class RefusedEvent(NamedTuple):
    """An event that the core has refused, with what came before it."""

    error: InternalError
    owner: str  # the peer that sent it; empty: this head
    frame: Frame | None  # None: it came in no message
    entry: JournalEntry
    row: int  # the newest row that is committed
    batch: tuple[JournalEntry, ...]  # applied behind that row, and in no row yet
    state: State  # as it met the event

    @property
    def is_peers_fault(self) -> bool:
        """Whether the peer is to blame, which it is not for a state that contradicts itself."""
        return bool(self.owner) and isinstance(self.error, InvalidTransition)


class Snapshot(NamedTuple):
    """A tuner's own ``state()`` (JSON text), exact as of journal row ``number``."""

    number: int
    state: str


class AssessorInput(NamedTuple):
    """Something that an assessor is shown: an intermediate metric (``value``: JSON text) of an
    attempt, or with ``value`` None the end of a trial. ``answered``: an assessor before this one
    could say then whether the trial is to go on."""

    trial: int
    value: str | None
    attempt: int = 0
    seq: int = 0
    success: bool = False
    answered: bool = True


class Base(NamedTuple):
    """The core's state as of journal row ``number`` (``dispatcher.state_codec``): what a
    replay begins with, in parts. Rows up to that one may be gone."""

    number: int
    parts: tuple[bytes, ...]


class Journal(Protocol):
    """The write side of the store. Thread: the engine's. Raises ``StoreError``."""

    @property
    def folder(self) -> Path:
        """Folder of the experiment."""
        ...

    def append(
        self, entries: Sequence[JournalEntry], touched: Iterable[Trial], *, durable: bool
    ) -> int:
        """Write a batch in one transaction, metrics to their table, events to the journal, the
        touched trials to the read model; return the number of the last journal row.

        Args:
            entries: in the order in which they were applied.
            touched: trials whose rows of the read model are written anew.
            durable: the batch has survived a power cut when this returns.
        """
        ...

    def rows(self, after: int = 0) -> Iterator[JournalRow]:
        """All journalled events after row ``after``, in order."""
        ...

    def last_metric(self, trial: int, attempt: int) -> tuple[int, str] | None:
        """The highest ``seq`` among an attempt's counted intermediate metrics, and its value."""
        ...

    def save_snapshot(self, snapshot: Snapshot) -> None:
        """Keep a tuner state; the newest two are kept."""
        ...

    def latest_snapshot(self) -> Snapshot | None:
        """The newest tuner state."""
        ...

    def close(self) -> None:
        """Checkpoint and close."""
        ...


class Compactor(Protocol):
    """Keeps the journal short. Thread: the engine's. Raises ``StoreError``."""

    def offer(self, state: State, row: int) -> None:
        """Offer a good moment: ``row`` is the newest one, ``state`` is as of it, and the tuner's
        own state was kept as of it, too. Taken when enough rows have gathered."""
        ...

    def tidy(self) -> bool:
        """Remove a bounded slice of what no replay needs; true while there is more."""
        ...


class PeerLink(Protocol):
    """One peer's place on the head's ROUTER."""

    def send(self, payload: bytes) -> bool:
        """Send in order. What the peer cannot take yet (it has not connected, its queue is
        full) is kept; false once too much is kept."""
        ...

    def renew(self, routing_id: str) -> None:
        """Talk to a successor of the peer under a new id (a new secret): messages of the old
        process are ignored from now on, and messages that waited for it are dropped."""
        ...


class ShownPast(Protocol):
    """Writes the metrics that trials have reported so far to a file, for the tuner host that asks
    for it. Thread: the engine's; it waits for nothing."""

    path: Path  # of :class:`AssessorInput` as JSON, a line each; it appears whole or not at all

    def forget(self) -> None:
        """Remove the file: a process is gone, or begins, and no metric is answered until the file
        is asked for."""
        ...

    def write(self) -> None:
        """Begin to write the file, as of now: the host asked for it. Raises ``StoreError``."""
        ...

    def check(self) -> None:
        """Called about twice a second. Raises ``StoreError`` if there will be no file."""
        ...

    def close(self) -> None:
        """End what is under way. Waits for that, a few seconds at most."""
        ...


class TunerPort(Protocol):
    """The head's side of the tuner host."""

    def perform(self, action: TunerAction) -> None:
        """Carry out an action; never blocks."""
        ...

    def flush(self) -> None:
        """Send what was gathered, in one message: all actions of a batch were performed."""
        ...

    def receive(self, payload: bytes) -> list[Event]:
        """Decode a message of the host. Raises ``ProtocolError`` for one that it may not send."""
        ...

    def check(self) -> list[Event]:
        """Called about twice a second: a process that died or went silent becomes an event."""
        ...

    def close(self, deadline_s: float) -> None:
        """End the process: with a message, then by a kill at the deadline. Blocks at most that
        long."""
        ...


class Backend(Protocol):
    """A kind of place where attempts run. Its events reach the core as reports of an agent."""

    def perform(self, action: WorkerAction) -> None:
        """Carry out an action; never blocks. ``StartAttempt`` is idempotent by attempt."""
        ...

    def flush(self) -> None:
        """Send what was gathered, in one message: all actions of a batch were performed."""
        ...

    def receive(self, payload: bytes) -> list[Event]:
        """Decode a message of an agent. Raises ``ProtocolError`` for one that it may not send."""
        ...

    def acknowledge(self) -> None:
        """Acknowledge everything received so far: it is on disk, and the agents may forget it."""
        ...

    def check(self) -> list[Event]:
        """Called about twice a second: leases that ran out, processes that died."""
        ...

    def close(self, *, leave_running: bool, deadline_s: float) -> None:
        """End the agents, or leave them to wait for the next head. Blocks at most that long."""
        ...


class FileEntry(NamedTuple):
    """A file that an attempt has written. ``path`` is relative, with ``/`` between names;
    ``size`` in bytes; ``changed_at`` by the clock of its machine; ``version`` changes whenever
    the content may have. Of a ``link`` nothing is read."""

    path: str
    size: int
    changed_at: float
    version: str
    link: bool = False


class FileList(NamedTuple):
    """Files by name; ``cut`` says that there are more than were asked for."""

    entries: list[FileEntry]
    cut: bool


class FilePiece(NamedTuple):
    """A part of a file, and what is known of the whole: ``data`` is empty behind its end.
    ``identity`` changes when another file has taken the name, as rotated logs do."""

    data: bytes
    size: int
    version: str
    identity: str


class AttemptFiles(Protocol):
    """The files of one attempt where it runs or ran, and a shell there.

    A backend may offer it. Paths begin with one of these: ``stdout``, ``stderr`` (older parts
    ``stdout.1`` …), ``artefacts/``, ``work/`` (its working directory, if it has one of its own) and
    ``checkpoints/``. No link is followed. All methods block, and raise ``BackendError`` where the
    place is not to be reached. A caller that writes such files here checks their names and sizes: a
    place is not trusted further than that. Thread: one.
    """

    place: str  # for people

    def list(self, below: str = "", *, most: int) -> FileList:
        """The files, or those in a folder of theirs, or the parts of a stream; at most so many."""
        ...

    def read(self, path: str, offset: int, limit: int) -> FilePiece | None:
        """A part of a file, ``limit`` bytes or fewer; None if there is no such file.

        Args:
            path: of the file, as above.
            offset: where to begin, in bytes.
            limit: at most so many bytes.
        """
        ...

    def shell(self, command: Sequence[str], *, terminal: bool) -> int:
        """Run a command where the attempt runs, a shell if it is empty, with the attempt's
        environment but without its secret; returns the exit code. It has our stdin, stdout and
        stderr; with ``terminal`` they are one, and the command gets one there."""
        ...

    def close(self) -> None:
        """Log out."""
        ...
