"""A job finds out about itself before its agent begins: its secret, or the rank of its node.

Runs in the job's container, by any Python from 3.9 on, and imports the standard library alone."""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.request
from collections.abc import Mapping
from typing import Any

#: The variable that has the question: :data:`RANK`, or the address of a secret.
VARIABLE, RANK = "BEQUEATH_JOB_ASKS", "rank"

#: Pauses between two tries (seconds): the right to a new secret comes a moment late.
PAUSES_S = (1, 5, 15)

_TOKEN = "computeMetadata/v1/instance/service-accounts/default/token"  # noqa: S105 - a path


def main() -> int:
    """Answer on stdout."""
    question = os.environ[VARIABLE]
    print(rank_in(os.environ) if question == RANK else secret_at(question))  # noqa: T201
    return 0


def rank_in(variables: Mapping[str, str]) -> int:
    """The rank of this node: that of the first one of the first pool is 0."""
    spec = json.loads(variables["CLUSTER_SPEC"])
    pools, task = spec["cluster"], spec["task"]
    before = sum(len(nodes) for pool, nodes in pools.items() if pool < task["type"])
    return before + int(task["index"])


def secret_at(address: str) -> str:
    """Read a secret as the account that the job runs as; it is base64."""
    host = os.environ.get("GCE_METADATA_HOST", "metadata.google.internal")
    for pause in (*PAUSES_S, None):
        try:
            ours = json_at(f"http://{host}/{_TOKEN}", {"Metadata-Flavor": "Google"})
            answer = json_at(address, {"Authorization": f"Bearer {ours['access_token']}"})
            return str(answer["payload"]["data"])
        except OSError as error:
            if pause is None:
                sys.exit(f"bequeath: {address} cannot be read: {error}")
            time.sleep(pause)
    raise AssertionError


def json_at(url: str, headers: Mapping[str, str]) -> Any:
    """Return what lies at an address. Headers go there, and nowhere that its answer names."""
    request = urllib.request.Request(url)  # noqa: S310 - of our own making
    for name, value in headers.items():
        request.add_unredirected_header(name, value)
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
        return json.load(answer)
