"""One machine asked over a connection: looked at first; then code and request go in, and a report
comes back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from nfs_setup.cluster.members import Inventory, Member, Program, Remote, Unreachable
from nfs_setup.errors import MachineRefuses, RequestRefused, RollbackFailed, SetupError
from nfs_setup.host import Ran
from nfs_setup.report import Line, Note, Report
from nfs_setup.request import VERBS, Request, ServerRequest
from nfs_setup.verify.peers import PeerHangs, PeerLost

OLDEST = (3, 9)

#: Seconds for a Python to start and answer, on a host that is busy.
_LOOK_S = 60.0

#: For any Python 3. A line of ours among what a login shell may print.
_LOOK = """\
import os, socket, sys
boot = "/proc/sys/kernel/random/boot_id"
boot = open(boot).read().strip() if os.path.exists(boot) else "-"
print("bequeath", "%d %d" % sys.version_info[:2], os.geteuid(), boot, socket.gethostname())
"""

_SUDO = ("sudo", "-n", "--")


@dataclass(frozen=True)
class Access:
    """Our access to a machine, as a first look shows it. ``become`` is put before a command
    so that root runs it."""

    become: tuple[str, ...]
    identity: str  # the same for two names of one machine
    rootless: str = ""  # why nothing can be changed there, or nothing


def look(remote: Remote, member: Member, *, needs_root: bool) -> Access:
    """See whether a request can be carried out there. Changes nothing. Blocks.

    Args:
        remote: the machine, logged in.
        member: the machine in the inventory.
        needs_root: whether to refuse a machine on which we cannot be root.

    Raises:
        MachineRefuses: without Python, with too old a one, or (if ``needs_root``) without root.
    """
    argv = (member.python, "-I", "-c", _LOOK)
    ran = remote.run(argv, stdin=b"", limit_s=_LOOK_S)
    fields = _fields(ran)
    if fields is None:
        raise _no_python(member.python, ran)
    version = (int(fields[1]), int(fields[2]))
    if version < OLDEST:
        raise MachineRefuses(
            f"{member.python} is Python {version[0]}.{version[1]} there, and 3.9 is needed",
            hint="name a newer one in the inventory, as python: python3.11",
        )
    identity = f"{fields[4]} {fields[5]}"
    if fields[3] == "0":
        return Access((), identity)
    ran = remote.run((*_SUDO, *argv), stdin=b"", limit_s=_LOOK_S)
    root = _fields(ran)
    if root is not None and root[3] == "0":
        return Access(_SUDO, identity)
    why = "there is no sudo" if ran.code == 127 else f"sudo -n says: {ran.message}"
    if needs_root:
        raise MachineRefuses(
            f"is not root there, and {why}",
            hint="log in as root (user: root), or allow sudo without a password (NOPASSWD); "
            "passwords for sudo are not supported",
        )
    return Access((), identity, why)


def _fields(ran: Ran) -> list[str] | None:
    for line in reversed(ran.out.splitlines()):
        fields = line.split()
        if len(fields) == 6 and fields[0] == "bequeath":
            return fields
    return None


def _no_python(python: str, ran: Ran) -> MachineRefuses:
    if ran.code == 124:
        return MachineRefuses("did not answer in time after the login", hint="is it overloaded?")
    missing = ran.code == 127
    return MachineRefuses(
        f"has no {python}" if missing else f"{python} does not run there: {ran.message}",
        hint="install Python 3.9 or later, or name where it is: python: /opt/python/bin/python3",
    )


#: Becomes the owner of the share there, and then the program that follows.
_BECOME = """\
import grp, os, pwd, sys
user, group = sys.argv[1:3]
try:
    account = pwd.getpwuid(int(user)) if user.isdigit() else pwd.getpwnam(user)
except KeyError:
    account = None
if account is None and not user.isdigit():
    sys.exit("there is no user %r" % user)
number = account.pw_uid if account else int(user)
own = account.pw_gid if account else number
group = own if not group else int(group) if group.isdigit() else grp.getgrnam(group).gr_gid
if account:
    os.initgroups(account.pw_name, group)
else:
    os.setgroups([group])
os.setgid(group)
os.setuid(number)
os.execvp(sys.argv[3], sys.argv[3:])
"""


def as_owner(inventory: Inventory, member: Member, access: Access) -> tuple[str, ...]:
    """Return the beginning of a command there that has the owner of the share run the rest.

    Args:
        inventory: names the owner of the share.
        member: the machine.
        access: what was found there.

    Returns:
        Nothing where the inventory names no owner, or where we are not root: then the user of
        the login runs it.
    """
    share = inventory.server.request
    assert isinstance(share, ServerRequest)
    if access.rootless or not share.owner:
        return ()
    return (*access.become, member.python, "-I", "-c", _BECOME, share.owner, share.group)


#: Packages are downloaded meanwhile.
LIMIT_S = 3600.0

_KINDS = {kind.__name__: kind for kind in (RequestRefused, MachineRefuses, RollbackFailed)}


def ask(
    remote: Remote, program: Program, access: Access, member: Member, request: Request
) -> Report:
    """Carry a request out there. Blocks for :data:`LIMIT_S` at most.

    Args:
        remote: the machine, logged in.
        program: this package, packed.
        access: what was found there.
        member: the machine in the inventory.
        request: what to do there.

    Raises:
        SetupError: what was raised there; or if no answer came.
    """
    document = {"verb": verb_of(request), **asdict(request)}
    ran = remote.run(
        (*access.become, *program.command(member.python)),
        stdin=program.code + json.dumps(document).encode(),
        limit_s=LIMIT_S,
    )
    answer = _answer(ran)
    if "error" in answer:
        raise error_of(answer["error"])
    report = report_of(answer)
    if access.rootless:
        report.note(f"nothing can be changed there: not root, and {access.rootless}", "warning")
    return report


def verb_of(request: Request) -> str:
    """Return the verb of a request."""
    return next(verb for verb, form in VERBS.items() if type(request) is form)


def report_of(document: dict[str, Any]) -> Report:
    """Return the report that came over a connection.

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


def error_of(document: Any) -> SetupError:
    """Return the error that came over a connection."""
    facts = document if isinstance(document, dict) else {"message": "failed without a reason"}
    kind = _KINDS.get(str(facts.get("kind")), MachineRefuses)
    message, hint, where = (str(facts.get(key, "")) for key in ("message", "hint", "where"))
    return kind(message, hint=hint, where=where)


def _answer(ran: Ran) -> dict[str, Any]:
    if ran.code == 124:
        raise MachineRefuses(
            f"was not done after {LIMIT_S / 60:.0f} minutes",
            hint="look at what it does there; --status says how it stands",
        )
    document = _last_object(ran)
    if document is None:
        raise MachineRefuses(_no_answer(ran))
    return document


def _last_object(ran: Ran) -> dict[str, Any] | None:
    """Return the JSON object in the last line of the output, among what logins print."""
    lines = [line for line in ran.out.splitlines() if line.startswith("{")]
    try:
        document = json.loads(lines[-1]) if lines else None
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _no_answer(ran: Ran) -> str:
    return f"gave no answer (exit code {ran.code}): {ran.message}"


class RemotePeer:
    """A machine of a survey: a program for each request, of which nothing stays there.

    Args:
        name: the machine's name in findings.
        remote: the machine, logged in.
        program: this package, packed.
        python: a Python of 3.9 or later there.
        prefix: put before each command, to run it as somebody else.
    """

    def __init__(
        self,
        name: str,
        remote: Remote,
        program: Program,
        python: str = "python3",
        prefix: Sequence[str] = (),
    ) -> None:
        self.name = name
        self._remote = remote
        self._program = program
        self._python = python
        self._prefix = tuple(prefix)

    def ask(self, request: Mapping[str, Any], limit_s: float) -> Mapping[str, Any]:
        """See :class:`~nfs_setup.verify.peers.Peer`."""
        try:
            ran = self._remote.run(
                (*self._prefix, *self._program.command(self._python)),
                stdin=self._program.code + json.dumps({"verb": "probe", **request}).encode(),
                limit_s=limit_s,
            )
        except Unreachable as error:
            raise PeerLost(error.message, hint=error.hint) from error
        if ran.code == 124:
            text = f"no answer in {limit_s:.0f} s"
            raise PeerHangs(text, where=self.name)
        document = _last_object(ran)
        if document is None:
            raise PeerLost(_no_answer(ran), where=self.name)
        if "too_old" in document:
            version = ".".join(map(str, document["too_old"]))
            raise PeerLost(
                f"{self._python} is Python {version} there, and 3.9 is needed", where=self.name
            )
        if "error" in document:
            raise error_of(document["error"])
        return document

    def close(self) -> None:
        """Nothing is held."""
