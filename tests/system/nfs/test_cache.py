"""On real NFS: the children of one host read the share once, and a host whose mount is not the
head's share is told so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.system.nfs.first import TRIAL
from tests.system.nfs.rig import Answer, Machine, machines, why_not

pytestmark = [
    pytest.mark.needs("nfs"),
    pytest.mark.slow,
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]

FOLDER, POINT = "/srv/weights", "/mnt/weights"
PARENT_BYTES = 10 * 800_000


class Pair(NamedTuple):
    server: Machine
    client: Machine


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """A share and one client, set up by the commands a person types."""
    with machines(tmp_path_factory.mktemp("rig"), ["server", "one"]) as network:
        server, client = network
        done = server.nfs(
            "server", FOLDER, "one", "--owner", TRIAL.name, "--shares-its-file-system"
        )
        assert done.code == 0, done
        done = client.nfs("client", f"server:{FOLDER}", POINT)
        assert done.code == 0, done
        yield Pair(server, client)


def by_user(machine: Machine, program: str, *arguments: str) -> Answer:
    done = machine.as_user(*machine.python_argv(program, *arguments), limit_s=280)
    assert done.code == 0, done
    return done


_SAVE = """
import os, sys
import numpy as np
os.environ["BEQUEATH_WEIGHTS_CACHE"] = "auto:0:"  # as where somebody keeps copies
from trial_runtime import weights
print(weights.save({str(n): np.full(100_000, n) for n in range(10)}, "1", root=sys.argv[1]).digest)
"""

# Children are processes of their own, and memory has lost the parent before each group of them.
# What the server was asked to read is the kernel's own count.
_CHILDREN = """
import glob, json, os, sys
import numpy as np
from trial_runtime import weights

point, digest, groups = sys.argv[1:]
(data,) = glob.glob(point + "/1/*.safetensors")

def read_from_server():
    mounted = False
    for line in open("/proc/self/mountstats"):
        if line.startswith("device "):
            mounted = f" mounted on {point} " in line
        elif mounted and line.split()[:1] == ["bytes:"]:
            return int(line.split()[5])

def child(names):
    state = weights.load("1", root=point, digest=digest, names=names or None)
    assert all((tensor == int(name)).all() for name, tensor in state.items())
    assert len(state) == (1 if names else 10)

def children(count, cache, names=""):
    os.environ["BEQUEATH_WEIGHTS_CACHE"] = cache
    fd = os.open(data, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)
    before = read_from_server()
    pids = []
    for _ in range(count):
        pid = os.fork()
        if not pid:
            code = 1
            try:
                child(names)
                code = 0
            finally:
                os._exit(code)
        pids.append(pid)
    assert not any(os.waitpid(pid, 0)[1] for pid in pids)
    return read_from_server() - before

def spoil(folder):
    (entry,) = glob.glob(folder + "/entries/*")
    with open(entry, "r+b") as file:
        file.seek(4_000_000)
        file.write(b"forged")
    return 0

said = []
for name, *words in json.loads(groups):
    said.append({"children": children, "spoil": spoil}[name](*words))
print(json.dumps(said))
"""


def test_eight_children_on_one_host_read_the_share_once(pair: Pair) -> None:
    """Mutation: ``cache_for`` sees no network file system, or the entry is not held."""
    digest = by_user(pair.server, _SAVE, FOLDER).out.strip()
    folder = f"{TRIAL.home}/cache"
    cache = f"auto:1000000000:{folder}"
    groups = [
        # The control: what is counted is there to be counted.
        ("children", 1, ""),
        ("children", 1, ""),
        # Who wants a tenth reads about that much, and copies nothing.
        ("children", 1, cache, "3"),
        # Eight children, of whom the last four come when memory has lost it.
        ("children", 4, cache),
        ("children", 4, cache),
        # A copy that is damaged: the original, and a new copy; nobody notices.
        ("spoil", folder),
        ("children", 1, cache),
        ("children", 1, cache),
        ("children", 1, cache),
        # On NFS a cache is refused, and the share is read.
        ("children", 1, f"auto:1000000000:{POINT}/cache"),
    ]
    said = by_user(pair.client, _CHILDREN, POINT, digest, json.dumps(groups)).out
    read = [count / PARENT_BYTES for count in json.loads(said)]
    alone, again, tenth, first, second, _, damaged, anew, copied, refused = read
    whole = (alone, again, first, damaged, anew, refused)
    assert all(0.99 < times < 1.2 for times in whole), read
    assert tenth < 0.3, read
    assert second < 0.05, read
    assert copied < 0.05, read


_LAY = (
    "import sys; from trial_runtime.weights.storage.share import lay_token as lay; "
    "print(lay(sys.argv[1]))"
)
# As root, who changes the mount between looks; each look is a process of the trials' user.
_LOOKS = """
import json, os, subprocess, sys
from trial_runtime.weights.storage.share import trouble_with

point, token, canonical, number, steps = sys.argv[1:]

def look(uid):
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            os.write(writing, trouble_with(point, token, canonical).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(pid, 0)
    with open(reading) as said:
        return said.read()

said = []
for step in json.loads(steps):
    if step == "root":
        said.append(look(0))
    elif step == "user":
        said.append(look(int(number)))
    else:
        subprocess.run(step, shell=True, check=True, stdout=sys.stderr)
print(json.dumps(said))
"""


def test_a_host_is_told_what_is_wrong_with_its_mount(pair: Pair) -> None:
    token = by_user(pair.server, _LAY, FOLDER).out.strip()
    steps = [
        *("user", "root"),
        *(f"mount -o remount,ro {POINT}", "user", f"mount -o remount,rw {POINT}", "user"),
        *(f"umount {POINT}", "user", f"mkdir {POINT}/other", "user"),
        *(f"rmdir {POINT}/other; mount {POINT}", "user"),
    ]
    words = (POINT, token, FOLDER, str(TRIAL.number), json.dumps(steps))
    done = pair.client.python(_LOOKS, *words, limit_s=280)
    assert done.code == 0, done
    right, squashed, read_only, again, bare, other, mounted = json.loads(done.out)
    assert (right, again, mounted) == ("", "", "")
    assert "user 0 (group 0)" in squashed
    assert "root_squash" in squashed
    assert "is read-only on this host" in read_only
    assert "is empty, as a place is where nothing is mounted" in bare
    assert f"is not the same share as the head's ({FOLDER})" in other
