"""Signatures of NAVER Cloud's gateway, against the rule as it is published."""

from __future__ import annotations

import base64
import hashlib
import hmac

from dispatcher.http_services.naver import GatewaySigner
from dispatcher.http_services.signing import HttpRequest

URL = "https://nsml.apigw.ntruss.com/nsml/v1/projects/runs?page=2&pageSize=10"


def test_a_request_is_signed_over_its_path_and_query_its_time_and_its_key() -> None:
    """Mutations: the host is signed, too; the query is left out; seconds for milliseconds; the
    secret goes along; a secret is looked up once."""
    secrets = iter(["first-secret", "second-secret"])
    signer = GatewaySigner(
        lambda: "access", lambda: next(secrets), lambda: "api", lambda: 1700000000.25
    )
    for secret in ("first-secret", "second-secret"):
        text = b"GET /nsml/v1/projects/runs?page=2&pageSize=10\n1700000000250\naccess"
        digest = hmac.new(secret.encode(), text, hashlib.sha256).digest()
        assert signer.headers(HttpRequest("GET", URL, {}, b"")) == {
            "x-ncp-apigw-timestamp": "1700000000250",
            "x-ncp-iam-access-key": "access",
            "x-ncp-apigw-signature-v2": base64.b64encode(digest).decode(),
            "x-ncp-apigw-api-key": "api",
        }
    assert signer.refused(), "another try has the time of the gateway"


def test_a_path_without_a_query_is_signed_as_it_is() -> None:
    signer = GatewaySigner(lambda: "a", lambda: "s", lambda: "k", lambda: 1.0)
    digest = hmac.new(b"s", b"POST /x\n1000\na", hashlib.sha256).digest()
    headers = signer.headers(HttpRequest("POST", "https://h/x", {}, b"{}"))
    assert headers["x-ncp-apigw-signature-v2"] == base64.b64encode(digest).decode()
