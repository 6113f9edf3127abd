"""The machine this runs on."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import stat as stat_bits
import subprocess
import tempfile
from collections.abc import Iterator, Sequence

from nfs_setup import walk
from nfs_setup.errors import MachineRefuses
from nfs_setup.host import MOST_BYTES, SOON_S, Ran, Stat

#: Bytes that are kept of a command's output, of each stream, from its end.
_MOST_OUTPUT = 256 << 10

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class LocalHost:
    """Files and commands of this machine.

    Args:
        root: what ``/`` stands for, of files only. Tests use a folder.
    """

    #: Users in whose folders nothing is moved against root's will. Tests run as one of them.
    _trusted: tuple[int, ...] = (0,)

    def __init__(self, root: str = "/") -> None:
        self._root = root.rstrip("/")

    def _at(self, path: str) -> str:
        assert path.startswith("/"), path
        return self._root + path

    def stat(self, path: str) -> Stat | None:
        """Return kind, mode and owner of a path; None if nothing is there."""
        try:
            found = os.lstat(self._at(path))
        except (FileNotFoundError, NotADirectoryError):
            return None
        kinds = (
            ("file", stat_bits.S_ISREG),
            ("folder", stat_bits.S_ISDIR),
            ("link", stat_bits.S_ISLNK),
        )
        kind = next((name for name, test in kinds if test(found.st_mode)), "other")
        return Stat(kind, stat_bits.S_IMODE(found.st_mode), found.st_uid, found.st_gid)

    def read(self, path: str) -> bytes | None:
        """Return all of a file, or None."""
        try:
            with open(self._at(path), "rb") as file:
                content = file.read(MOST_BYTES + 1)
        except (FileNotFoundError, NotADirectoryError):
            return None
        if len(content) > MOST_BYTES:
            raise MachineRefuses(f"has more than {MOST_BYTES >> 20} MiB", where=path)
        return content

    def write(self, path: str, content: bytes, mode: int, uid: int = 0, gid: int = 0) -> None:
        """See :meth:`nfs_setup.host.Files.write`. Extended attributes (SELinux) stay."""
        target = self._at(path)
        folder, name = os.path.split(target)
        descriptor, new = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                if (uid, gid) != (os.geteuid(), os.getegid()):
                    os.fchown(file.fileno(), uid, gid)
                os.fchmod(file.fileno(), mode)
                _copy_attributes(target, new)
                os.fsync(file.fileno())
            os.replace(new, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(new)
            raise
        self._sync(folder)

    def remove(self, path: str) -> None:
        """Remove a file, if it is there."""
        target = self._at(path)
        try:
            os.unlink(target)
        except (FileNotFoundError, NotADirectoryError):
            return
        self._sync(os.path.dirname(target))

    def make_folder(self, path: str, mode: int) -> None:
        """Make one folder, whatever the umask."""
        walk.make_folder(path, mode, root=self._root, trusted=self._trusted)

    def remove_folder(self, path: str) -> bool:
        """Remove an empty folder; one that is not there counts as removed."""
        return walk.remove_folder(path, root=self._root, trusted=self._trusted)

    def set_owner(self, path: str, mode: int, uid: int, gid: int) -> None:
        """See :meth:`nfs_setup.host.Files.set_owner`."""
        walk.set_owner(path, mode, uid, gid, root=self._root, trusted=self._trusted)

    def why_movable(self, path: str) -> str:
        """Return why others than root could put something else at a path; empty if they cannot."""
        return walk.why_movable(path, root=self._root, trusted=self._trusted)

    def names(self, path: str) -> list[str]:
        """Return the names in a folder, sorted."""
        try:
            return sorted(os.listdir(self._at(path)))
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return []

    def make_link(self, path: str, target: str) -> None:
        """Make a symbolic link; where it leads is not looked at."""
        os.symlink(target, self._at(path))

    def link(self, path: str) -> str | None:
        """Return the target of a link, or None; links of other people's processes count as none."""
        try:
            return os.readlink(self._at(path))
        except OSError:
            return None

    def run(
        self, argv: Sequence[str], *, limit_s: float = SOON_S, stdin: bytes | None = None
    ) -> Ran:
        """See :meth:`nfs_setup.host.Host.run`.

        The program has a session of its own, so that all of it ends when time is up.
        """
        environment = {"PATH": _PATH, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            try:
                process = subprocess.Popen(
                    list(argv),
                    stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    env=environment,
                    cwd="/",
                    start_new_session=True,
                )
            except FileNotFoundError:
                return Ran(127, "", f"{argv[0]}: no such program")
            except OSError as error:
                return Ran(126, "", f"{argv[0]}: {error.strerror}")
            try:
                process.communicate(stdin, timeout=limit_s)
                code = process.returncode
            except subprocess.TimeoutExpired:
                _end(process)
                code = 124
            except BaseException:  # Ctrl-C: nothing of ours goes on behind the user's back
                _end(process)
                raise
            late = f"\n{argv[0]} took longer than {limit_s:.0f} s" if code == 124 else ""
            return Ran(code, _tail(out.fileno()), _tail(err.fileno()) + late)

    def is_root(self) -> bool:
        """Whether it may change the system."""
        return os.geteuid() == 0

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the one lock of this machine, in memory that a restart clears."""
        path = self._at("/run/bequeath-nfs.lock")
        # Not a file that somebody put there for us to open.
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                hint = "wait until it is done"
                text = "another 'bequeath nfs' is changing this machine"
                raise MachineRefuses(text, hint=hint) from None
            yield
        finally:
            os.close(descriptor)

    @staticmethod
    def _sync(folder: str) -> None:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _copy_attributes(old: str, new: str) -> None:
    """Copy the extended attributes of the file that is replaced, as far as they can be set."""
    with contextlib.suppress(OSError):
        for name in os.listxattr(old, follow_symlinks=False):
            with contextlib.suppress(OSError):
                os.setxattr(new, name, os.getxattr(old, name, follow_symlinks=False))


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a session. One stuck in the kernel (state D) is left behind rather than waited for."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        pass


def _tail(descriptor: int) -> str:
    size = os.fstat(descriptor).st_size
    taken = os.pread(descriptor, _MOST_OUTPUT, max(0, size - _MOST_OUTPUT))
    return taken.decode("utf-8", "replace")
