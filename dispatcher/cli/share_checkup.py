"""The check of a weights root on a network file system for ``doctor``: a quick verify."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dispatcher.findings import Finding, Severity

if TYPE_CHECKING:
    from nfs_setup.verify import Peer

#: Seconds for one probe: the user waits for all of it.
_LIMIT_S = 10.0

_ROUNDS = 5


class ShareChecked(NamedTuple):
    """The findings on a share. ``answers``: whether this process may access it without hanging."""

    answers: bool
    findings: list[Finding]


def check_share(topic: str, folder: Path) -> ShareChecked:
    """Measure the folder, or the nearest one above it that is there, if it is on a network.

    Runs a process of its own, since access to a share whose server is away hangs. Blocks for
    seconds at most; a local disk gives no findings.
    """
    from nfs_setup.verify import LocalPeer

    peer: Peer = LocalPeer("here")
    try:
        return _checked(topic, os.path.abspath(folder), peer)
    finally:
        peer.close()


def _checked(topic: str, path: str, peer: Peer) -> ShareChecked:
    from nfs_setup.errors import SetupError
    from nfs_setup.plain_values import made_of
    from nfs_setup.verify import Place, Plan, judged, survey
    from nfs_setup.verify.facts import Surroundings
    from nfs_setup.verify.place import kind_of

    try:
        while True:
            answer = peer.ask({"do": "look", "path": path}, _LIMIT_S)
            if "failed" in answer:
                return ShareChecked(True, [])  # other checks report on the folder
            around = made_of(Surroundings, answer["facts"], "answer")
            if around.found != "nothing" or path == "/":
                break
            path = os.path.dirname(path)
    except SetupError as error:
        hint = "see whether its server is up and reachable; programs wait for it"
        text = f"{path} does not answer: {error.message}"
        return ShareChecked(False, [Finding(topic, Severity.PROBLEM, text, hint)])
    if not kind_of(around.kind).network:
        return ShareChecked(True, [])
    facts = survey([Place(peer, path)], Plan(rounds=_ROUNDS, limit_s=_LIMIT_S, quick=True))
    findings, passed = [], 0
    for one in judged(facts):
        if one.level.value == "passes":
            passed += 1
        elif one.check != "mount options":  # doctor prints them anyhow
            severity = Severity.PROBLEM if one.level.value == "wrong" else Severity.NOTE
            findings.append(Finding(topic, severity, f"{one.check}: {one.seen}", one.change))
    hint = f"from several machines: bequeath nfs verify {path} --from HOST"
    text = f"{passed} checks of the share pass"
    return ShareChecked(True, [*findings, Finding(topic, Severity.OK, text, hint)])
