"""Status: what this machine serves and mounts, of what was set up here. Changes nothing."""

from __future__ import annotations

from typing import Any

from nfs_setup import exports
from nfs_setup.errors import MachineRefuses
from nfs_setup.host import Host
from nfs_setup.ledger import FOLDER, Ledger, Run
from nfs_setup.mount_table import mount_at
from nfs_setup.mounts import advice_on
from nfs_setup.report import Report
from nfs_setup.services import nfsd_threads, versions
from nfs_setup.undo import clients_of
from nfs_setup.units import waits_at


def status(host: Host, report: Report) -> None:
    """Fill in how things stand. Notes name what is not as it was set up.

    Raises:
        MachineRefuses: if this is not root, which alone may read what was set up.
    """
    if not host.is_root():
        raise MachineRefuses(
            f"what was set up stands in {FOLDER}, which only root may read", hint="use sudo"
        )
    runs = Ledger(host).runs
    for run in runs:
        if not run.complete:
            report.note(
                f"'{run.verb}' of {run.target} died on its way; the next change of this machine "
                "takes it back, so does 'bequeath nfs undo'",
                "warning",
            )
    shares = _targets(runs, "server")
    report.shown["shares"] = [_share(host, path, report) for path in shares]
    if shares:
        report.shown["server"] = {
            "threads": nfsd_threads(host),
            "versions": [name for name, on in versions(host).items() if on],
            "clients": clients_of(host),
        }
        if not nfsd_threads(host):
            report.note("the NFS server does not run", "warning")
    report.shown["mounts"] = [_mount(host, p, report) for p in _targets(runs, "client")]


def _targets(runs: list[Run], verb: str) -> list[str]:
    return list(dict.fromkeys(run.target for run in runs if run.verb == verb and run.complete))


def _share(host: Host, path: str, report: Report) -> dict[str, Any]:
    file = exports.file_of(path)
    found = [e for e in exports.read_exports(host.read(file) or b"") if e.path == path]
    active = path in exports.exported(host)
    if not active:
        report.note(f"{path} was set up and is not exported", "warning")
    return {
        "path": path,
        "file": file,
        "exported": active,
        "clients": [{"client": e.client, "options": e.options} for e in found],
    }


def _mount(host: Host, point: str, report: Report) -> dict[str, Any]:
    mount = mount_at(host, point)
    if mount is None:
        waiting = waits_at(host, point)
        if not waiting:
            report.note(f"{point} was set up and is not mounted", "warning")
        return {"point": point, "mounted": False, "waiting": waiting}
    for advice in advice_on(mount):
        report.note(f"{point}: {advice.text}", "warning" if advice.level == "trouble" else "note")
    return {
        "point": point,
        "mounted": True,
        "source": mount.device,
        "options": list(mount.options),
    }
