"""A request in, a report out: what the command line calls, and what a remote host will run."""

from __future__ import annotations

from nfs_setup.client import client_steps
from nfs_setup.errors import MachineRefuses
from nfs_setup.host import Host
from nfs_setup.paths import checked_path
from nfs_setup.report import Report
from nfs_setup.request import ClientRequest, Request, ServerRequest, UndoRequest
from nfs_setup.server import server_steps
from nfs_setup.status import status
from nfs_setup.transaction import Watcher, carry_out
from nfs_setup.undo import undo


def perform(host: Host, request: Request, watch: Watcher = lambda line: None) -> Report:
    """Carry a request out on a host. Blocks until done.

    Args:
        host: the machine.
        request: one of :data:`nfs_setup.request.VERBS`.
        watch: gets each step as it is done.

    Raises:
        RequestRefused: if what was asked for is wrong or unsafe; nothing was changed.
        MachineRefuses: if the machine is in the way; what was begun was taken back.
        RollbackFailed: if it could not be.
    """
    try:
        return _performed(host, request, watch)
    except OSError as error:  # a disk that is full, a file system that is read-only
        text = error.strerror or str(error)
        raise MachineRefuses(text, where=str(error.filename or "")) from error


def _performed(host: Host, request: Request, watch: Watcher) -> Report:
    if isinstance(request, ServerRequest):
        path = checked_path(request.path, "folder")
        report = Report("server", path, request.dry_run)
        carry_out(host, report, server_steps(host, request, report), watch)
        return report
    if isinstance(request, ClientRequest):
        point = checked_path(request.point, "mount point")
        report = Report("client", point, request.dry_run)
        carry_out(host, report, client_steps(host, request, report), watch)
        return report
    if isinstance(request, UndoRequest):
        target = checked_path(request.target, "what to undo") if request.target else ""
        report = Report("undo", target, request.dry_run)
        undo(host, request, report, watch)
        return report
    report = Report("status", "")
    status(host, report)
    return report
