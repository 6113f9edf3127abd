"""Hand-overs from a parent on one client to its child on the other, and what came of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.system.nfs.store.desk import Desk, Refused


@dataclass
class Line:
    """A line of descent that goes to and fro between two clients.

    Each child loads what its parent saved on the other client, told only the path and the
    digest, and saves in turn, inheriting what it left unchanged. Before its parent saved it
    has looked for the path, so its client believes that nothing is there.
    """

    root: str
    name: str
    nbytes: int = 64 * 1024
    done: int = 0
    stale: int = 0
    torn: int = 0
    kept: int = 0  # tensors that were referred to and not written again
    waits: list[float] = field(default_factory=list)
    saved: dict[str, tuple[int, str]] = field(default_factory=dict)  # path → number, digest
    last: tuple[str, str] | None = None

    def hand_over(self, writer: Desk, reader: Desk, *, look: bool = True) -> None:
        """One parent on ``writer``, read by its child on ``reader``."""
        number, path = self.done, f"{self.root}/{self.name}/{self.done}"
        if look:
            assert not reader.ask("look", path=path)
        parent = {} if self.last is None else dict(zip(_PARENT, self.last, strict=True))
        saved = writer.ask(
            *("save",), root=self.root, path=path, number=number, nbytes=self.nbytes, **parent
        )
        self.last = path, saved["digest"]
        self.saved[path] = number, saved["digest"]
        self.kept += saved["kept"]
        self.check(reader, path)
        self.done += 1

    def check(self, reader: Desk, path: str) -> None:
        """Load what was saved there, and count what is wrong with it."""
        number, digest = self.saved[path]
        try:
            whole = reader.ask("load", root=self.root, path=path, number=number, digest=digest)
        except Refused as error:
            self.stale += error.name == "StaleWeights"
            self.torn += error.name != "StaleWeights"
            return
        self.torn += not whole
        self.waits.append(reader.seconds)


_PARENT = ("parent", "parent_digest")


@dataclass
class Naive:
    """The same without any of it: a file is there as soon as it has a name."""

    done: int = 0
    good: int = 0
    stale: int = 0
    torn: int = 0

    def hand_over(self, writer: Desk, reader: Desk, path: str, nbytes: int) -> None:
        """The reader opens the path as soon as it exists, as far as its client knows."""
        reading = reader.begin("read_naively", path=path, number=self.done, within_s=1.0)
        writer.ask("write_naively", path=path, number=self.done, nbytes=nbytes)
        seen = reading.result(60)
        self.done += 1
        self.good += seen == "good"
        self.stale += seen == "stale"
        self.torn += seen == "torn"
