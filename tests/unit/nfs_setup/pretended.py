"""A pretended machine: its files are a real folder, its commands a few lines of Python."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

from nfs_setup.host import SOON_S, Ran
from nfs_setup.local_host import LocalHost

DEBIAN = 'ID=debian\nPRETTY_NAME="Debian GNU/Linux 12"\n'
ROCKY = 'ID="rocky"\nID_LIKE="rhel centos fedora"\nPRETTY_NAME="Rocky Linux 9.4"\n'

Command = Callable[[list[str]], Ran]

OK = Ran(0, "", "")


class Pretended(LocalHost):
    """Debian without systemd, or Rocky Linux with it; nothing of NFS is installed.

    ``ran`` holds the commands that changed something; ``fail`` makes commands fail whose text
    begins so, ``kill`` raises there, as a power cut would.
    """

    _trusted = (0, os.geteuid())

    def __init__(self, folder: Path, *, system: str = "debian") -> None:
        super().__init__(str(folder))
        self.folder = folder
        self.root = True
        self.ran: list[str] = []
        self.fail: dict[str, Ran] = {}
        self.kill = ""
        self.systemd = system == "redhat"
        self.debian = system == "debian"
        self.installed = {"bash"}
        self.configured: set[str] = set()  # removed, and their configuration left behind
        self.running: set[str] = set()
        self.enabled: set[str] = set()
        self.masked = False
        self.mounted: dict[str, tuple[str, str]] = {}  # point → source, options
        for name in ("etc", "srv", "mnt", "proc/self", "proc/fs/nfsd", "run", "var/lib"):
            (folder / name).mkdir(parents=True)
        (folder / "etc/os-release").write_text(DEBIAN if self.debian else ROCKY)
        (folder / "etc/fstab").write_bytes(b"# of the administrator\n/dev/sda1 / ext4 defaults 0 1")
        (folder / "etc/exports").write_text("# nothing here\n")
        if self.systemd:
            (folder / "run/systemd/system").mkdir(parents=True)
        else:
            (folder / "etc/rc2.d").mkdir()
        (folder / "etc/systemd/system").mkdir(parents=True)
        self.shown()

    def write(self, path: str, content: bytes, mode: int, uid: int = 0, gid: int = 0) -> None:
        super().write(path, content, mode, *self._own(uid, gid))

    def set_owner(self, path: str, mode: int, uid: int, gid: int) -> None:
        super().set_owner(path, mode, *self._own(uid, gid))

    @staticmethod
    def _own(uid: int, gid: int) -> tuple[int, int]:
        """Who is not root can give nothing away."""
        return (uid, gid) if os.geteuid() == 0 else (os.geteuid(), os.getegid())

    def is_root(self) -> bool:
        return self.root

    def run(
        self, argv: Sequence[str], *, limit_s: float = SOON_S, stdin: bytes | None = None
    ) -> Ran:
        words = list(argv)
        text = " ".join(words)
        if self.kill and text.startswith(self.kill):
            raise PowerCut
        for beginning, answer in self.fail.items():
            if text.startswith(beginning):
                return answer
        answer = self.answer(words)
        self.shown()
        return answer

    def answer(self, words: list[str]) -> Ran:
        match words:
            case ["dpkg-query", *rest]:
                names = [n for n in rest if n in self.installed] if len(rest) > 3 else []
                listed = names if len(rest) > 3 else sorted(self.installed)
                left = "".join(f"config-files {name}\n" for name in sorted(self.configured))
                return Ran(0, "".join(f"installed {name}\n" for name in listed) + left, "")
            case ["rpm", "-qa", *_]:
                return Ran(0, "".join(f"installed {name}\n" for name in self.installed), "")
            case ["getent", "passwd", "trainer"]:
                return Ran(0, "trainer:x:1234:1235::/home/trainer:/bin/sh\n", "")
            case ["getent", "group", "ml"]:
                return Ran(0, "ml:x:1300:\n", "")
            case ["getent", "ahosts", name] if name != "nowhere":
                return OK
            case ["getent", *_]:
                return Ran(2, "", "")
            case ["nfsconf", *_]:
                there = (self.folder / "etc/nfs.conf.d/bequeath.conf").exists()
                return Ran(0, "n\n" if there else "", "")
            case ["exportfs", "-s"]:
                return Ran(0, self._exports(), "")
            case ["systemctl", "is-active", name]:
                return Ran(0, "active\n" if name in self.running else "inactive\n", "")
            case ["systemctl", "is-enabled", name]:
                masked = self.masked and name.startswith("rpcbind")
                word = "enabled" if name in self.enabled else "disabled"
                return Ran(0, "masked\n" if masked else f"{word}\n", "")
            case ["service", name, "status"]:
                return Ran(0 if name in self.running else 3, "", "")
            case ["firewall-cmd", *_] | ["ufw", "status"]:
                return Ran(127, "", "no such program")
            case ["ls", *_]:
                return OK
        self.ran.append(" ".join(words))
        return self.change(words)

    def change(self, words: list[str]) -> Ran:
        match words:
            case ["apt-get", *_, name] if "install" in words:
                self.installed |= {name, f"lib{name}"}
                self.configured -= self.installed
                self.bring_rpcbind()
                state = self.folder / "var/lib/nfs"
                (state / "sm").mkdir(parents=True, exist_ok=True)
                (state / "etab").touch()
            case ["dnf", *_, name]:
                self.installed |= {name, f"lib{name}"}
            case ["dpkg", "--remove", *names]:
                self.installed -= set(names)
                self.configured |= set(names)
            case ["dpkg", "--purge", *names] | ["rpm", "-e", *names]:
                self.installed -= set(names)
                self.configured -= set(names)
                if "rpcbind" in names:
                    (self.folder / "etc/rc2.d/S01rpcbind").unlink(missing_ok=True)
                    self.running.discard("rpcbind")
            case ["service", name, "start"] | ["systemctl", "start", name]:
                self.running.add(name)
            case ["service", name, "stop"] | ["systemctl", "stop", name]:
                self.running.discard(name)
            case ["update-rc.d", name, "enable"]:
                (self.folder / f"etc/rc2.d/S01{name}").symlink_to(f"../init.d/{name}")
                # What Debian's does beside, and disabling does not take back.
                wants = self.folder / "etc/systemd/system/multi-user.target.wants"
                wants.mkdir(exist_ok=True)
                (wants / f"{name}.service").symlink_to(f"/lib/systemd/system/{name}.service")
            case ["update-rc.d", name, "disable"]:
                (self.folder / f"etc/rc2.d/S01{name}").unlink()
            case ["systemctl", "enable", "--now", name]:
                self.enabled.add(name)
            case ["systemctl", "disable", "--now", name]:
                self.enabled.discard(name)
            case ["systemctl", "enable", name]:
                self.enabled.add(name)
            case ["systemctl", "disable", name]:
                self.enabled.discard(name)
            case ["systemctl", "mask", "--now", *_]:
                self.masked = True
            case ["systemctl", "unmask", *_]:
                self.masked = False
            case ["mount", "-t", "nfs4", "-o", options, "--", source, point]:
                self.mounted[point] = (source, options)
            case ["umount", "--", point]:
                del self.mounted[point]
        return OK

    def bring_rpcbind(self) -> None:
        """As Debian's packages do: installed, started, and there at each boot."""
        if "rpcbind" not in self.installed:
            self.installed.add("rpcbind")
            self.running.add("rpcbind")
            (self.folder / "etc/rc2.d/S01rpcbind").symlink_to("../init.d/rpcbind")

    def _exports(self) -> str:
        folder = self.folder / "etc/exports.d"
        files = sorted(folder.glob("*.exports")) if folder.is_dir() else []
        lines = [line for file in files for line in file.read_text().splitlines()]
        return "".join(f"{line}\n" for line in lines if line.startswith("/"))

    def shown(self) -> None:
        """Write into /proc what the kernel would show there."""
        proc = self.folder / "proc"
        on = bool({"nfs-kernel-server", "nfs-server.service"} & self.running)
        (proc / "fs/nfsd/threads").write_text("8\n" if on else "0\n")
        lines = ["20 1 8:1 / / rw - ext4 /dev/sda1 rw\n"]
        for name in self.enabled:
            if name.endswith(".automount"):
                point = "/" + name[: -len(".automount")].replace("-", "/")
                lines.append(f"29 20 0:40 / {point} rw - autofs systemd-1 rw\n")
                unit = self.folder / f"etc/systemd/system/{name[: -len('.automount')]}.mount"
                pairs = [line.partition("=") for line in unit.read_text().splitlines()]
                said = {key: value for key, _, value in pairs}
                shown = f"{said['What']} {said['Options']}"
                lines.append(f"30 20 0:41 / {point} rw - nfs4 {shown}\n")
        for point, (source, options) in self.mounted.items():
            shown = [o for o in options.split(",") if o != "retry=0"]
            place, share = point.replace(" ", r"\040"), source.replace(" ", r"\040")
            lines.append(f"30 20 0:41 / {place} rw - nfs4 {share} {','.join(shown)}\n")
        (proc / "self/mountinfo").write_text("".join(lines))


class PowerCut(BaseException):
    """Nothing that comes after it happens, the taking back included."""


def tree(folder: Path) -> dict[str, tuple[str, int, bytes]]:
    """Everything below a folder, but what the kernel shows and what a restart clears."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if name.split("/")[0] in ("proc", "run"):
            continue
        facts = path.lstat()
        if path.is_symlink():
            content = os.readlink(path).encode()
        else:
            content = path.read_bytes() if path.is_file() else b""
        found[name] = (stat.filemode(facts.st_mode), facts.st_uid, content)
    return found
