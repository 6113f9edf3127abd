"""Bringing code to three hosts, against OpenSSH's scp of the same archive to one of them.

All hosts are on this machine and share its cores, so that an archive is encrypted once and
decrypted three times here. What hosts of their own would show is seen where the lines are the
bound, as they are in a laboratory; without bounds three plain copies at a time are the floor.

What was brought stays until the end (some 6 GB): ext4 gives no inode away that was freed in the
last minutes, so that each new file behind 9,000 that were just removed makes it search for long.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.rows import Row, median, row
from dispatcher.code_archive import Packed, pack_code, scan_code
from dispatcher.remote_python.probed import Probe, probe
from dispatcher.remote_python.runner import RemotePython
from dispatcher.remote_python.unpacking import unpack
from dispatcher.ssh import connect
from tests.support.ssh_hosts import ROOT, Host, SshHosts, ssh_hosts, why_not

HOSTS = 3
MB = 1_000_000
#: Of each host's line: 250 Mbit/s.
LINE = 31.25 * MB


def run(*, quick: bool = False) -> list[Row]:
    """The rows; blocks for two minutes."""
    if reason := why_not():
        return [row("code to three hosts", "", "not measured", None, reason)]
    big, small, rounds = (6, 100, 1) if quick else (30, 3_000, 3)
    with tempfile.TemporaryDirectory(prefix="upload-") as made:
        folder = Path(made)
        folder.chmod(0o755)
        code = folder / "code"
        _write_code(code, big, small)
        with ssh_hosts(folder / "hosts", HOSTS) as hosts:
            one = _Bringing(hosts, code, folder)
            return [*_on_lines(one, rounds), *_without_bounds(one, rounds)]


def _write_code(code: Path, big: int, small: int) -> None:
    """Files of 5 MB that no compression makes smaller, and ordinary ones of 50 kB."""
    code.mkdir()
    for number in range(big):
        (code / f"big{number}").write_bytes(os.urandom(5 * MB))
    text = b"".join(b"value_%d = compute(%d)\n" % (n, n) for n in range(2_000))[:50_000]
    for number in range(small):
        path = code / f"package{number % 30}" / f"module{number}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"# %d\n" % number + text)


def _on_lines(one: _Bringing, rounds: int) -> list[Row]:
    scp, ours = [], []
    with one.lines(LINE) as lines:
        for number in range(rounds):
            scp.append(one.scp(lines[:1]))
            ours.append(one.bring(lines, f"line{number}"))
        before = one.sent()
        again_s = one.bring(lines, "line0", anew=False)
        again = one.sent() - before
    ratio = median(ours) / median(scp)
    size = one.packed.nbytes / MB
    return [
        row(
            f"{size:.0f} MB of code to {HOSTS} hosts at {LINE / MB * 8:.0f} Mbit/s each, packed, "
            "brought, verified and unpacked, against one scp of the archive",
            "≤ 1.3 ×",
            f"{ratio:.2f} ×",
            ratio <= 1.3,
            f"{median(ours):.1f} against {median(scp):.1f} s, medians of {rounds} in turns",
        ),
        row(
            "… a second time: bytes sent to all hosts",
            "nothing of the code",
            f"{again / 1e3:.0f} kB",
            again < 100e3,
            f"logging in and asking, {again_s:.1f} s",
        ),
    ]


def _without_bounds(one: _Bringing, rounds: int) -> list[Row]:
    alone, together, ours = [], [], []
    with one.lines(0) as lines:
        for number in range(rounds):
            alone.append(one.scp(lines[:1]))
            together.append(one.scp(lines))
            ours.append(one.bring(lines, f"free{number}"))
    ratio = median(ours) / median(together)
    return [
        row(
            "… with no bound but this machine's cores, which all hosts share, against three plain "
            "scps at a time",
            "",
            f"{ratio:.2f} ×",
            None,
            f"{median(ours):.1f} against {median(together):.1f} s; one scp alone "
            f"{median(alone):.1f} s",
        )
    ]


@dataclass(frozen=True)
class _Line:
    host: Host
    address: str
    port: int


class _Bringing:
    """The archive, and two ways of bringing it."""

    def __init__(self, hosts: SshHosts, code: Path, folder: Path) -> None:
        self._hosts = hosts
        self._code = code
        self._folder = folder
        self._known = folder / "known"
        self.packed = self._pack()

    def _pack(self) -> Packed:
        listing = scan_code(self._code, most_files=100_000, most_bytes=1 << 40)
        return pack_code(listing, self._folder / "code.tar")

    @contextmanager
    def lines(self, rate: float) -> Iterator[list[_Line]]:
        """One to each host; 0: as the network is."""
        if not rate:
            yield [_Line(host, host.address, 22) for host in self._hosts]
            return
        argv = [sys.executable, "-m", "benchmarks.trials.slow_lines", str(rate)]
        process = self._hosts.inside(
            [*argv, *(f"{host.address}:22" for host in self._hosts)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            ports = json.loads(process.stdout.readline())
            yield [_Line(h, "127.0.0.1", p) for h, p in zip(self._hosts, ports, strict=True)]
        finally:
            process.stdin.close()
            process.wait(60)
            process.stdout.close()

    def _know(self, lines: list[_Line]) -> None:
        text = ""
        for line in lines:
            key = " ".join((line.host.disk / "etc/ssh/host_key.pub").read_text().split()[:2])
            text += f"[{line.address}]:{line.port} {key}\n" if line.port != 22 else ""
            text += f"{line.address} {key}\n" if line.port == 22 else ""
        self._known.write_text(text)

    def scp(self, lines: list[_Line]) -> float:
        """Seconds that plain copies take, all at a time."""
        self._know(lines)
        begun = time.perf_counter()
        known = ["-o", f"UserKnownHostsFile={self._known}", "-o", "IdentitiesOnly=yes"]
        words = ["scp", "-q", "-F", os.devnull, *known, "-i", str(self._hosts.key), "-P"]
        archive = str(self._folder / "code.tar")
        running = [
            self._hosts.inside([*words, str(x.port), archive, f"root@{x.address}:/scratch/plain"])
            for x in lines
        ]
        for each in running:
            if each.wait(600):
                raise RuntimeError("scp failed")
        return time.perf_counter() - begun

    def bring(self, lines: list[_Line], name: str, *, anew: bool = True) -> float:
        """Seconds from the folder of code here to folders of code there, all hosts at a time."""
        self._know(lines)
        begun = time.perf_counter()
        packed = self._pack()

        def one(line: _Line) -> bool:
            target = line.host.target(host=line.address, port=line.port, known_hosts=self._known)
            with connect(target, dial=self._hosts.dial) as connection:
                python = RemotePython(connection, lambda *rest: ["python3", *rest], line.address)
                place = f"/scratch/{name}"
                if not anew and packed.digest in probe(python, Probe(place, modules=())).code:
                    return False  # as an agent's start finds it
                below = f"{place}/code/{packed.digest}"
                return unpack(python, self._folder / "code.tar", packed.digest, below)

        with ThreadPoolExecutor(len(lines)) as threads:
            brought = list(threads.map(one, lines))
        if brought != [anew] * len(lines):
            raise RuntimeError(f"brought: {brought}")
        return time.perf_counter() - begun

    def sent(self) -> int:
        """Bytes that went to the hosts so far."""
        show = ["cat", "/proc/net/dev"]
        process = self._hosts.inside(show, stdout=subprocess.PIPE, text=True)
        table = process.communicate(timeout=60)[0].splitlines()
        cards = [line.split() for line in table if line.split()[0].startswith("v")]
        return sum(int(words[9]) for words in cards)


if __name__ == "__main__":
    for line in run(quick="--quick" in sys.argv):
        print(line["what"], "|", line["target"], "|", line["measured"], "|", line["detail"])
