"""How a Framework ended, by its completion status. Pure.

Codes from 0 are exit codes of a container; negative ones are FrameworkController's own. Attributes
say whether the next try may end otherwise: ``Transient`` and ``Conflict``, or ``Permanent``. What
each task made of it lies in a list, or, for large jobs, in a text of gzip and base64.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64decode
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from dispatcher.platforms.allocations.allocation import Gone
from dispatcher.platforms.kubernetes.api.documents import mapping_in, mappings_in, text_of

#: Bytes of the statuses of all tasks that are read once they are unpacked: a reason is looked for.
MOST_BYTES = 2 << 20

#: Longest diagnosis that is passed on (characters): it may hold the status of a whole pod.
MOST_TEXT = 200

#: Codes whose cause is known: its ConfigMap or its pod was deleted, or the Framework was to stop.
POD_DELETED, STOPPED, NO_MORE_TASK = -101, -210, -230
_CAUSES = {
    -100: Gone.CANCELLED,
    POD_DELETED: Gone.EVICTED,
    STOPPED: Gone.CANCELLED,
    NO_MORE_TASK: Gone.CANCELLED,
}

#: A task that was stopped since its Framework was over: it is not the reason for that.
_BESIDE = -220

#: Ends of a pod that its kubelet names.
_OF_PODS = {"DeadlineExceeded": Gone.WALL_TIME, "Evicted": Gone.EVICTED}


def completion_of(attempt: Mapping[str, Any]) -> tuple[Gone, str]:
    """Return how the last attempt of a Framework ended, and why.

    Args:
        attempt: its ``attemptStatus``.
    """
    completion = mapping_in(attempt, "completionStatus")
    type_ = mapping_in(completion, "type")
    if type_.get("name") == "Succeeded":
        return Gone.FINISHED, ""
    task = _task_of(attempt, completion)
    reason = _reason(completion, task)
    if (cause := _CAUSES.get(_code_of(completion))) is not None:
        return cause, reason
    pod = mapping_in(task, "pod")
    if any(each.get("reason") == "OOMKilled" for each in mappings_in(pod, "containers")):
        return Gone.OUT_OF_MEMORY, "OOMKilled: it used more memory than its limit"
    if (by_pod := _OF_PODS.get(text_of(pod.get("reason")))) is not None:
        return by_pod, reason
    attributes = type_.get("attributes")
    named = attributes if isinstance(attributes, list) else []
    if "Transient" in named or "Conflict" in named:
        return Gone.EVICTED, reason
    return Gone.NEVER if "Permanent" in named else Gone.FAILED, reason


def _code_of(completion: Mapping[str, Any]) -> int:
    """The code; 0 where there is none."""
    code = completion.get("code")
    return code if isinstance(code, int) else 0


def _task_of(attempt: Mapping[str, Any], completion: Mapping[str, Any]) -> Mapping[str, Any]:
    """The completion status of the task that was the reason; empty if none was, or it is not
    known."""
    trigger = mapping_in(completion, "trigger")
    wanted = (trigger.get("taskRoleName"), trigger.get("taskIndex"))
    first: Mapping[str, Any] = {}
    for role, task in _tasks_in(attempt):
        status = mapping_in(mapping_in(task, "attemptStatus"), "completionStatus")
        if (role, task.get("index")) == wanted:
            return status
        failed = mapping_in(status, "type").get("name") == "Failed"
        if failed and status.get("code") != _BESIDE and not first:
            first = status
    return first


def _tasks_in(attempt: Mapping[str, Any]) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    """Yield the role and the status of each task."""
    packed = attempt.get("taskRoleStatusesCompressed")
    if isinstance(packed, str) and packed:
        attempt = {"taskRoleStatuses": unpacked(packed)}
    for role in mappings_in(attempt, "taskRoleStatuses"):
        for task in mappings_in(role, "taskStatuses"):
            yield role.get("name"), task


@lru_cache(maxsize=16)
def unpacked(text: str) -> Any:
    """The content of a text of gzip and base64; None for one that is none, or holds too much."""
    try:
        inflater = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        content = inflater.decompress(b64decode(text, validate=True), MOST_BYTES)
        return json.loads(content) if inflater.eof else None
    except (ValueError, zlib.error, RecursionError):
        return None


def _reason(completion: Mapping[str, Any], task: Mapping[str, Any]) -> str:
    """The reason in one line: the phrase of the code, and the last words of a container."""
    phrase, code = text_of(completion.get("phrase")), _code_of(completion)
    parts = [phrase if code >= 0 else f"{phrase} ({code})"]
    for each in mappings_in(mapping_in(task, "pod"), "containers"):
        if each.get("code"):
            parts.append(f"exit code {each.get('code')}")
            parts += text_of(each.get("message")).strip().splitlines()[-1:]
            return ": ".join(filter(None, parts))
    diagnosis = " ".join(text_of(completion.get("diagnostics")).split())
    parts.append(diagnosis[:MOST_TEXT])
    return ": ".join(filter(None, parts))
