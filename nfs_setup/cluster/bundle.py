"""This package as bytes that any Python 3.9 runs, without a file being left on the host.

The code goes in by the program's input, with its digest before it, into a file that exists
in memory only (``memfd_create``): nothing to clean up when a connection or a host dies half way,
no name in /tmp that somebody else could have taken, no SFTP needed, and root reads what came over
the connection rather than what lies in a user's folder.
"""

from __future__ import annotations

import functools
import hashlib
import io
import zipfile
from pathlib import Path

import nfs_setup

#: Not needed where a request is carried out.
_STAYS = "cluster"

_MAIN = "import sys\nfrom nfs_setup.__main__ import main\nsys.exit(main())\n"

#: Before every start of this program. Written for any Python 3, so that an old one can say so.
START = """\
import hashlib, os, runpy, sys
digest, size = sys.argv[1], int(sys.argv[2])
code = sys.stdin.buffer.read(size)
if hashlib.sha256(code).hexdigest() != digest:
    sys.exit("the code did not arrive whole")
file = os.memfd_create("nfs_setup")
with open(file, "wb", closefd=False) as whole:
    whole.write(code)
os.set_inheritable(file, False)
sys.dont_write_bytecode = True
sys.argv[:] = ["nfs_setup"]
runpy.run_path("/proc/self/fd/%d" % file, run_name="__main__")
"""


@functools.lru_cache(maxsize=1)
def packed() -> bytes:
    """The package as a zipapp; the same bytes for the same code, whenever and wherever."""
    root = Path(nfs_setup.__file__).parent
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        _add(archive, "__main__.py", _MAIN.encode())
        for path in sorted(root.rglob("*.py")):
            inside = path.relative_to(root)
            if inside.parts[0] != _STAYS:
                _add(archive, f"nfs_setup/{inside.as_posix()}", path.read_bytes())
    return buffer.getvalue()


def command(python: str) -> tuple[str, ...]:
    """The command that runs it: its input is :func:`packed`, then the request."""
    code = packed()
    digest = hashlib.sha256(code).hexdigest()
    # -I: neither its folder nor its environment nor what its user installed is imported.
    return (python, "-I", "-c", START, digest, str(len(code)))


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, content)
