"""The weight store over the kernel's NFS, between machines: guests of one host, as in the tests.

Guests have a processor and a network that are slower than any machine's own, so only ratios
say something: each is of two things done in turns on the same mount.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.rows import Row, row
from tests.system.nfs.first import TRIAL
from tests.system.nfs.rig import ROOT, machines, why_not
from tests.system.nfs.store.desk import Desk, desks, employ

_CLERK = ROOT / "benchmarks/trials/nfs_clerk.py"
_POINT = "/mnt/weights"
_MIB = 1 << 20


def run(*, quick: bool = False) -> list[Row]:
    """Measure everything; blocks for some minutes."""
    reason = why_not()
    if reason:
        return [row("weights over NFS", "", "not measured", None, reason)]
    mib, repetitions = (8, 2) if quick else (48, 7)
    with _clients() as (one, two):
        return [
            _saving(one, mib, repetitions),
            _loading(one, two, mib, repetitions),
            *(_handing_over(one, two, kib, 3 * repetitions) for kib in (64, 1024 * mib // 4)),
            *_inheriting(one, two, mib),
        ]


@contextmanager
def _clients() -> Iterator[list[Desk]]:
    with (
        tempfile.TemporaryDirectory(prefix="nfs-") as folder,
        machines(Path(folder), ["server", "one", "two"]) as network,
    ):
        server, *clients = network
        done = server.nfs("server", "/srv/weights", "one", "two", "--owner", TRIAL.name)
        assert done.code == 0, done
        for client in clients:
            done = client.nfs("client", "server:/srv/weights", _POINT)
            assert done.code == 0, done
            employ(client, _CLERK)
        with desks(network, *clients) as found:
            yield found


def _saving(one: Desk, mib: int, repetitions: int) -> Row:
    seconds = one.ask("saves", root=_POINT, nbytes=mib * _MIB, repetitions=repetitions)
    return _ratio(f"save {mib} MiB over NFS, against dd with fsync", seconds, mib)


def _loading(one: Desk, two: Desk, mib: int, repetitions: int) -> Row:
    path = f"{_POINT}/load"
    saved = one.ask("save_layers", root=_POINT, path=path, nbytes=mib * _MIB, changed=0)
    seconds = two.ask(
        "loads",
        root=_POINT,
        path=path,
        digest=saved["digest"],
        plain=f"{_POINT}/dd-0",  # as many bytes, written by the other client, too
        repetitions=repetitions,
    )
    return _ratio(f"load {mib} MiB over NFS, digests checked, against dd", seconds, mib)


def _ratio(what: str, seconds: dict[str, float], mib: int) -> Row:
    ratio = seconds["dd"] / seconds["ours"]
    detail = ", ".join(f"{name} {mib / s:.0f} MiB/s" for name, s in seconds.items())
    return row(what, "≥ 0.8 ×", f"{ratio:.2f} ×", ratio >= 0.8, detail)


def _handing_over(one: Desk, two: Desk, kib: int, repetitions: int) -> Row:
    """From the moment that the parent's digest is known to the moment that its child has all
    of it, checked; against an order that does nothing and dd of a file of that size."""
    trips, files, ours = [], [], []
    for number in range(repetitions):
        path = f"{_POINT}/over-{kib}-{number}"
        plain = f"{path}.plain"
        two.ask("look", path=path)
        one.ask("save_plain", path=plain, number=number, nbytes=kib * 1024)
        saved = one.ask("save_layers", root=_POINT, path=path, nbytes=kib * 1024, changed=0)
        begun = time.perf_counter()
        two.ask("load_layers", root=_POINT, path=path, digest=saved["digest"])
        ours.append(time.perf_counter() - begun)
        begun = time.perf_counter()
        two.ask("nothing")
        trips.append(time.perf_counter() - begun)
        begun = time.perf_counter()
        two.ask("read_whole", path=plain)
        files.append(time.perf_counter() - begun)
    trip, file, our = (statistics.median(each) for each in (trips, files, ours))
    return row(
        f"from publish to a verified load on the other client, {kib:,} KiB",
        "",
        f"{our / file:.1f} × a round trip and the file's transfer",
        None,
        f"{our * 1e3:.1f} ms; round trip {trip * 1e3:.1f} ms, with the file {file * 1e3:.1f} ms",
    )


def _inheriting(one: Desk, two: Desk, mib: int) -> Iterator[Row]:
    """A child with one of ten tensors of its own, saved and loaded where its parent was loaded."""
    nbytes = mib * _MIB
    first, second = f"{_POINT}/parent", f"{_POINT}/child"
    parent = one.ask("save_layers", root=_POINT, path=first, nbytes=nbytes, changed=0)
    two.ask("load_layers", root=_POINT, path=first, digest=parent["digest"])
    child = one.ask(
        "save_layers",
        root=_POINT,
        path=second,
        nbytes=nbytes,
        changed=1,
        parent=first,
        parent_digest=parent["digest"],
    )
    warm = two.ask("load_layers", root=_POINT, path=second, digest=child["digest"])
    for what, sent in (("save", child["sent"]), ("load, its parent seen before", warm["received"])):
        share = sent / nbytes
        yield row(
            f"a child that shares 90 % of its tensors, {what}: bytes over the wire",
            "≤ 15 %",
            f"{share:.1%}",
            share <= 0.15,
            f"{sent:,} of {nbytes:,} bytes, headers of the network included",
        )
