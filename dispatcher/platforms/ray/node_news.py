"""The news that Ray has of nodes that are to come and to go. None of it is public
there.

Loaded by :mod:`dispatcher.platforms.ray.driver` from its file: the standard library of any Python
from 3.9 on, and Ray, are all that it needs.
"""

from __future__ import annotations

import importlib
import time
from typing import Any

#: What comes of questions that Ray answers in some versions, or from inside a cluster only.
_NO_ANSWERS = (
    *(ImportError, AttributeError, KeyError, TypeError, ValueError),
    *(RuntimeError, AssertionError, OSError),
)


def hurry(rows: list[dict[str, Any]], ray: Any) -> None:
    """Note in rows of actors when their nodes are to go: Ray places nothing there any more, and
    knows when they will be taken away, as a spot market or an autoscaler has said.

    Args:
        rows: of the driver.
        ray: the module.
    """
    try:
        state = importlib.import_module("ray._private.state").state
        ends = state.get_draining_nodes()  # by number, in milliseconds; 0: not known
    except (*_NO_ANSWERS, ray.exceptions.RayError):
        return
    for row in rows:
        for node in row.get("nodes", ()):
            if ends.get(node):
                left_s = max(0.0, ends[node] / 1000 - time.time())
                row["ends_in_s"] = min(left_s, row.get("ends_in_s", left_s))


def of_autoscaler(ray: Any, limit_s: float) -> dict[str, Any]:
    """Ask what an autoscaler reports of requests that wait, and of nodes that it starts.

    Args:
        ray: the module.
        limit_s: longest time of the answer (seconds).

    Returns:
        ``never``: requests that no kind of node can fulfill; ``failed``: kind, number and reason of
        nodes that could not be started; ``coming``: kind and number of those that are being
        started; ``error``: of the autoscaler itself, a text. Nothing where there is none.
    """
    report: dict[str, Any] = {"never": [], "failed": [], "coming": [], "error": ""}
    try:
        messages = importlib.import_module("ray.core.generated.autoscaler_pb2")
        address = ray.get_runtime_context().gcs_address
        client = importlib.import_module("ray._raylet").GcsClient(address=address)
        reply = messages.GetClusterStatusReply()
        reply.ParseFromString(client.get_cluster_status(timeout_s=limit_s))
        state = reply.autoscaling_state
        report["never"] = [dict(r.resources_bundle) for r in state.infeasible_resource_requests]
        report["failed"] = [
            [each.ray_node_type_name, each.count, each.reason]
            for each in state.failed_instance_requests
        ]
        report["coming"] = [
            [each.ray_node_type_name, each.count] for each in state.pending_instance_requests
        ]
        kept = importlib.import_module("ray.experimental.internal_kv")
        error = kept._internal_kv_get("__autoscaling_error")  # of the older one
        report["error"] = (error or b"").decode(errors="replace")
    except (*_NO_ANSWERS, ray.exceptions.RayError):
        pass
    return report
