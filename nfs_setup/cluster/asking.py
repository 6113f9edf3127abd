"""One request carried out on one machine: code and request go in, a report comes back."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from nfs_setup import errors
from nfs_setup.cluster import bundle
from nfs_setup.cluster.ground import Ground
from nfs_setup.cluster.members import Member
from nfs_setup.cluster.remote import Remote
from nfs_setup.errors import MachineRefuses, SetupError
from nfs_setup.host import Ran
from nfs_setup.report import Line, Note, Report
from nfs_setup.request import VERBS, Request

#: Packages are downloaded meanwhile.
LIMIT_S = 3600.0

_KINDS = {kind.__name__: kind for kind in (errors.RequestRefused, MachineRefuses)}
_KINDS["RollbackFailed"] = errors.RollbackFailed


def ask(remote: Remote, ground: Ground, member: Member, request: Request) -> Report:
    """Carry a request out there. Blocks for :data:`LIMIT_S` at most.

    Args:
        remote: the machine, logged in.
        ground: what was found there.
        member: the machine in the inventory.
        request: what to do there.

    Raises:
        SetupError: what was raised there; or if no answer came.
    """
    document = {"verb": verb_of(request), **asdict(request)}
    ran = remote.run(
        (*ground.become, *bundle.command(member.python)),
        stdin=bundle.packed() + json.dumps(document).encode(),
        limit_s=LIMIT_S,
    )
    answer = _answer(ran)
    if "error" in answer:
        raise error_of(answer["error"])
    report = report_of(answer)
    if ground.rootless:
        report.note(f"nothing can be changed there: not root, and {ground.rootless}", "warning")
    return report


def verb_of(request: Request) -> str:
    """The verb that a request is of."""
    return next(verb for verb, form in VERBS.items() if type(request) is form)


def report_of(document: dict[str, Any]) -> Report:
    """A report as it came over a connection.

    Raises:
        MachineRefuses: if it is none.
    """
    facts = {name: value for name, value in document.items() if name != "changed"}
    try:
        facts["steps"] = [Line(**step) for step in facts["steps"]]
        facts["notes"] = [Note(**note) for note in facts["notes"]]
        return Report(**facts)
    except (KeyError, TypeError) as error:
        raise MachineRefuses(f"answered something else than a report: {error}") from None


def error_of(document: dict[str, Any]) -> SetupError:
    """An error as it came over a connection."""
    kind = _KINDS.get(str(document.get("kind")), MachineRefuses)
    message, hint, where = (str(document.get(key, "")) for key in ("message", "hint", "where"))
    return kind(message, hint=hint, where=where)


def _answer(ran: Ran) -> dict[str, Any]:
    if ran.code == 124:
        raise MachineRefuses(
            f"was not done after {LIMIT_S / 60:.0f} minutes",
            hint="look at what it does there; --status says how it stands",
        )
    for line in reversed(ran.out.splitlines()):
        if line.startswith("{"):
            try:
                document = json.loads(line)
            except (ValueError, RecursionError):
                break
            if isinstance(document, dict):
                return document
    raise MachineRefuses(f"gave no answer (exit code {ran.code}): {ran.message}")
