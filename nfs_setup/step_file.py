"""A file of ours, or our own marked lines in somebody else's."""

from __future__ import annotations

import difflib
import hashlib
from dataclasses import dataclass
from typing import Any

from nfs_setup.errors import MachineRefuses
from nfs_setup.host import Host
from nfs_setup.ledger import Ledger
from nfs_setup.step import Change, KnownBefore


@dataclass(frozen=True)
class WriteFile(KnownBefore):
    """A file with this text and nothing else. ``reload`` runs after it changed, either way."""

    path: str
    text: str
    mode: int = 0o644
    reload: tuple[str, ...] = ()
    shared: bool = False
    kind: str = "file"

    @property
    def title(self) -> str:
        """The path of the file."""
        return self.path

    def _wanted(self, old: bytes | None) -> bytes:
        return _bytes(self.text)

    def change(self, host: Host) -> Change | None:
        """Return the diff."""
        found = host.stat(self.path)
        if found is not None and found.kind != "file":
            text = f"is a {found.kind}, not a plain file"
            raise MachineRefuses(text, where=self.path, hint="move it away")
        old = host.read(self.path)
        new = self._wanted(old)
        if old == new:
            return None
        detail = diff(self.path, old or b"", new)
        if self.reload:
            detail += f"then: {' '.join(self.reload)}\n"
        return Change(f"{'write' if old is None else 'change'} {self.path}", detail)

    def before(self, host: Host, ledger: Ledger) -> dict[str, Any]:
        """Keep the old content; return its name, and what the new one will be known by."""
        found, old = host.stat(self.path), host.read(self.path)
        data: dict[str, Any] = {"path": self.path, "reload": list(self.reload), "old": None}
        if found is not None and old is not None:
            data["old"] = ledger.keep(old)
            data["mode"], data["uid"], data["gid"] = found.mode, found.uid, found.gid
        data["new"] = hashlib.sha256(self._wanted(old)).hexdigest()
        return data

    def apply(self, host: Host) -> None:
        """Write the file, then have it read."""
        found = host.stat(self.path)
        new = self._wanted(host.read(self.path))
        if found is None:
            host.write(self.path, new, self.mode)
        else:
            host.write(self.path, new, found.mode, found.uid, found.gid)
        reload(host, self.reload)


@dataclass(frozen=True)
class MarkedLines(WriteFile):
    """A few lines between two marks in a file of somebody else's; the rest is not touched."""

    mark: str = ""

    def _wanted(self, old: bytes | None) -> bytes:
        begin, end = _marks(self.mark)
        block = begin + _bytes(self.text) + end
        content = old or b""
        if begin in content:
            before, _, rest = content.partition(begin)
            _, found, after = rest.partition(end)
            if not found:
                raise MachineRefuses(
                    "has our opening mark and not the closing one",
                    where=self.path,
                    hint=f"put back the line {end.decode().strip()!r}, or remove both",
                )
            return before + block + after
        joint = b"" if not content or content.endswith(b"\n") else b"\n"
        return content + joint + block

    def before(self, host: Host, ledger: Ledger) -> dict[str, Any]:
        """Return the mark as well: it finds our lines in a file that others have changed since."""
        return {**super().before(host, ledger), "mark": self.mark}


def undo_file(host: Host, ledger: Ledger, data: dict[str, Any]) -> str:
    """See :class:`nfs_setup.step.Undo`. Puts back what was there, byte for byte.

    Where somebody has changed the file since, only our marked lines are taken out of it; a
    file of ours that somebody changed is not overwritten.
    """
    path, old = data["path"], None if data["old"] is None else ledger.kept(data["old"])
    now, kept = host.read(path), ""
    if now != old:
        if now is None or hashlib.sha256(now).hexdigest() == data["new"]:
            _restore(host, path, old, data)
        elif data.get("mark"):
            if _restore_others(host, path, now, data["mark"]):
                kept = "others have changed it since: only our lines were taken out"
            else:
                kept = "others have changed it since and our lines are gone already"
        else:
            raise MachineRefuses(
                "was changed by somebody since we wrote it",
                where=path,
                hint="save that change in another file and remove this one, then undo again",
            )
    # The file is back. A reload that stumbles does so over files of others, as it did before.
    try:
        reload(host, tuple(data["reload"]))
    except MachineRefuses as error:
        kept = "; ".join(filter(None, [kept, f"it is back, but {error.where}: {error.message}"]))
    return kept


def _restore(host: Host, path: str, old: bytes | None, data: dict[str, Any]) -> None:
    if old is None:
        host.remove(path)
    else:
        host.write(path, old, data["mode"], data["uid"], data["gid"])


def _restore_others(host: Host, path: str, now: bytes, mark: str) -> bool:
    begin, end = _marks(mark)
    before, found, rest = now.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        return False
    stat = host.stat(path)
    assert stat is not None
    host.write(path, before + after, stat.mode, stat.uid, stat.gid)
    return True


def reload(host: Host, command: tuple[str, ...]) -> None:
    """Have a service read its files again, if it is there at all.

    Raises:
        MachineRefuses: if it says no.
    """
    if not command:
        return
    ran = host.run(command)
    if not ran.ok and ran.code != 127:
        hint = "it reads files of others, too: mend the line that it names, then try again"
        raise MachineRefuses(ran.message, where=" ".join(command), hint=hint)


def diff(path: str, old: bytes, new: bytes) -> str:
    """Return a unified diff, as ``diff -u`` prints it.

    Args:
        path: the name of the file, in the head of the diff.
        old: its content before.
        new: its content after.
    """
    before, after = (text.decode("utf-8", "replace").splitlines() for text in (old, new))
    lines = difflib.unified_diff(before, after, path, path, lineterm="")
    return "".join(f"{line}\n" for line in lines)


def _marks(mark: str) -> tuple[bytes, bytes]:
    return (
        _bytes(f"# bequeath nfs: begin {mark} (do not edit up to its end)\n"),
        _bytes(f"# bequeath nfs: end {mark}\n"),
    )


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
