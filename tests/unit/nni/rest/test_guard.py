"""Who may come in at an endpoint. Each row is red without the rule that it is for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import pytest

from dispatcher.web.guard import MOST_BODY
from tests.unit.nni.rest.conftest import Make

SECRET = "k3x9pa7yq2m4w8zt"
NAVIGATES = {"sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}


class Case(NamedTuple):
    """One way to ask, and what comes of it."""

    status: int
    method: str = "GET"
    path: str = "/check-status"
    prefix: str = ""
    api: str = "/api/v1/nni"
    peer: int | None = -1
    headers: Mapping[str, str] = MappingProxyType({})


STRANGER = os.getuid() + 1

CASES = [
    Case(200),
    Case(200, headers={"host": "127.0.0.1:8080"}),
    Case(200, headers={"host": "[::1]:8080"}),
    Case(200, "HEAD"),
    # Users.
    Case(403, peer=STRANGER),
    Case(403, peer=None),
    Case(403, "DELETE", "/experiment", peer=STRANGER),
    Case(403, path="/", api="", peer=STRANGER),
    # A prefix: none without it, and where a connection is nobody's, only a secret one.
    Case(404, prefix="nni"),
    Case(404, prefix="nni", api="/nnj/api/v1/nni"),
    Case(404, prefix="nni", api="/nnix/api/v1/nni"),
    Case(200, prefix="nni", api="/nni/api/v1/nni"),
    Case(200, prefix="a/b", api="/a/b/api/v1/nni"),
    Case(403, prefix="nni", api="/nni/api/v1/nni", peer=None),
    Case(200, prefix=SECRET, api=f"/{SECRET}/api/v1/nni", peer=None),
    Case(404, prefix=SECRET, api=f"/{SECRET[:-1]}x/api/v1/nni", peer=None),
    Case(404, prefix=SECRET, peer=None),
    Case(403, prefix=SECRET, api=f"/{SECRET}/api/v1/nni", peer=STRANGER),
    Case(307, prefix="nni", path="", api="/nni"),
    # Hosts: a name that somebody else points here.
    Case(403, headers={"host": "evil.example"}),
    Case(403, headers={"host": "evil.example:8080"}),
    Case(400, headers={"host": ""}),
    # Pages of other sites, and of other ports of this machine.
    Case(403, headers={"sec_fetch_site": "cross-site"}),
    Case(403, headers={"sec_fetch_site": "same-site"}),
    Case(403, headers={"sec_fetch_site": "cross-site", **NAVIGATES}),
    Case(403, headers={"sec_fetch_site": "cross-site", **NAVIGATES}, path="/trial-file/0/stdout"),
    Case(200, path="/", api="", headers={"sec_fetch_site": "cross-site", **NAVIGATES}),
    Case(200, headers={"sec_fetch_site": "same-origin"}),
    Case(200, headers={"origin": "http://localhost:8080"}),
    Case(403, headers={"origin": "http://localhost:9999"}),
    Case(403, headers={"origin": "null"}),
    Case(403, "DELETE", "/experiment", headers={"origin": "http://evil.example"}),
    Case(403, "DELETE", "/experiment", headers={"sec_fetch_site": "none"}),
    Case(403, "POST", "/trial-jobs", headers={"origin": "http://evil.example"}),
    # Methods and sizes.
    Case(405, "OPTIONS"),
    Case(405, "TRACE"),
    Case(413, "POST", "/trial-jobs", headers={"content_length": str(MOST_BODY + 1)}),
    Case(413, headers={"x_long": "x" * 40_000}),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case))[:80])
def test_requests(make: Make, case: Case) -> None:
    asked = make(prefix=case.prefix)
    answer = asked(case.method, case.path, peer=case.peer, api=case.api, **case.headers)
    assert answer.status == case.status, answer
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in answer.headers
    if case.status >= 400 and case.method != "HEAD":
        assert set(answer.json()) == {"error"}
        assert case.prefix not in answer.json()["error"] or not case.prefix


def test_the_page_of_a_prefix_is_below_its_slash(make: Make) -> None:
    answer = make(prefix="nni")("GET", "", api="/nni")
    assert answer.headers["location"] == "/nni/"
