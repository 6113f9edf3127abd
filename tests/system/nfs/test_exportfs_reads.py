"""The real exportfs reads from our files what we meant, whatever a folder is called."""

from __future__ import annotations

import os
import random
import re
import subprocess
from pathlib import Path

import pytest

from nfs_setup.errors import RequestRefused
from nfs_setup.exports import Client, Options, read_exports, text_of
from nfs_setup.paths import checked_path
from tests.system.nfs.rig import why_not

pytestmark = [
    pytest.mark.needs("nfs"),
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]

CLIENTS = [Client("10.9.8.7"), Client("10.9.0.0/24")]

#: In a mount namespace of its own, so that this machine's exports are not touched.
_PROGRAM = """
set -e
mount -t tmpfs none /var/lib/nfs
mount --bind "$1" /etc/exports
exportfs -ra
cat /var/lib/nfs/etab
"""


def exported(file: Path) -> set[tuple[bytes, str]]:
    """Folders and clients in exportfs's own table, which escapes once."""
    argv = ["unshare", "--mount", "sh", "-c", _PROGRAM, "sh", str(file)]
    environment = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
    done = subprocess.run(argv, capture_output=True, env=environment, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    found = set()
    for line in done.stdout.splitlines():
        path, _, rest = line.partition(b"\t")
        plain = re.sub(rb"\\([0-7]{3})", lambda m: bytes([int(m[1], 8)]), path)
        found.add((plain, rest.partition(b"(")[0].decode()))
    return found


def test_it_reads_what_we_meant(tmp_path: Path) -> None:
    dice = random.Random(11)
    nasty = " #()*,=-'$`;&|?%:~^!<>{}[]é\u202e0123456789ab.:"
    folders = set()
    for _ in range(200):
        name = "".join(dice.choice(nasty) for _ in range(dice.randint(1, 12)))
        if name not in (".", ".."):
            (tmp_path / "srv" / name).mkdir(parents=True, exist_ok=True)
            folders.add(str(tmp_path / "srv" / name))
    texts = [text_of(checked_path(f, "folder"), CLIENTS, Options()) for f in sorted(folders)]
    file = tmp_path / "exports"
    file.write_text("".join(texts), encoding="utf-8", errors="surrogateescape")
    meant = {(os.fsencode(f), client.word) for f in folders for client in CLIENTS}
    assert exported(file) == meant
    assert {(os.fsencode(e.path), e.client) for e in read_exports(file.read_bytes())} == meant


def test_what_it_reads_wrongly_is_refused(tmp_path: Path) -> None:
    path = tmp_path / r"a\101"
    path.mkdir()
    (tmp_path / "aA").mkdir()
    with pytest.raises(RequestRefused, match="backslash"):
        checked_path(str(path), "folder")
    file = tmp_path / "exports"
    file.write_text(f"{tmp_path}/a\\134101 10.9.8.7(ro,no_subtree_check)\n")
    assert exported(file) == {(os.fsencode(tmp_path / "aA"), "10.9.8.7")}
    assert [e.path for e in read_exports(file.read_bytes())] == [str(tmp_path / "aA")]
