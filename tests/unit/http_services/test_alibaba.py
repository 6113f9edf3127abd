"""Who asks Alibaba Cloud, how a request is signed, and what its errors mean."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from dispatcher.errors import PassingBackendError
from dispatcher.http_services.alibaba import (
    AccessKey,
    AcsSigner,
    KeyByReference,
    KeyFromUri,
    authorization,
    error_of_alibaba,
    key_of_variables,
)
from dispatcher.http_services.errors import (
    AlreadyThere,
    Busy,
    Invalid,
    NotAllowed,
    NotLoggedIn,
    NotThere,
    OverQuota,
    Unreachable,
)
from dispatcher.http_services.server_clock import ServerClock
from dispatcher.http_services.signing import HttpRequest
from tests.unit.http_services.test_client import Given, Service

#: The example of the vendor's page "Request syntax and signature method V3", with its fixed date
#: and nonce.
URL = (
    "https://ecs.cn-shanghai.aliyuncs.com/?RegionId=cn-shanghai"
    "&ImageId=win2019_1809_x64_dtc_zh-cn_40G_alibase_20230811.vhd"
)
NONCE = "3156853299f313e23d1673dc12e1703d"
MOMENT = 1_698_315_752.0  # 2023-10-26T10:22:32Z
EXAMPLE = HttpRequest(
    "POST",
    URL,
    {"Accept": "*/*", "x-acs-action": "RunInstances", "x-acs-version": "2014-05-26"},
    b"",
)
SIGNATURE = "06563a9e1b43f5dfe96b81484da74bceab24a1d853912eee15083a6f0f3283c0"


class Keys:
    """A key that a test lays down."""

    def __init__(self, token: str = "") -> None:
        self.token = token
        self.times_refused = 0

    def key(self) -> AccessKey:
        return AccessKey("YourAccessKeyId", "YourAccessKeySecret", self.token)

    def refused(self) -> None:
        self.times_refused += 1


def signed(request: HttpRequest, keys: Keys | None = None) -> Mapping[str, str]:
    return AcsSigner(keys or Keys(), lambda: NONCE, lambda: MOMENT).headers(request)


def test_the_published_example_has_its_signature() -> None:
    """Mutations: parameters in the order of the request; a header that is not signed; a digest of
    the wrong text."""
    headers = signed(EXAMPLE)
    assert headers["x-acs-date"] == "2023-10-26T10:22:32Z"
    assert headers["host"] == "ecs.cn-shanghai.aliyuncs.com"
    assert headers["Authorization"] == (
        "ACS3-HMAC-SHA256 Credential=YourAccessKeyId,SignedHeaders=host;x-acs-action;"
        "x-acs-content-sha256;x-acs-date;x-acs-signature-nonce;x-acs-version,"
        f"Signature={SIGNATURE}"
    )


def test_all_of_a_request_is_signed() -> None:
    """Mutation: who is in between may change the body, the type of it, or the path."""
    headers = {**EXAMPLE.headers, "Content-Type": "application/json"}
    others = [
        EXAMPLE._replace(method="GET"),
        EXAMPLE._replace(url=URL.replace("/?", "/a?")),
        EXAMPLE._replace(url=f"{URL}&a="),
        EXAMPLE._replace(body=b"{}"),
        EXAMPLE._replace(headers=headers),
        EXAMPLE._replace(headers={**EXAMPLE.headers, "x-acs-action": "Other"}),
    ]
    made = {signed(each)["Authorization"] for each in [EXAMPLE, *others]}
    assert len(made) == 1 + len(others)
    assert "content-type;host;" in signed(others[4])["Authorization"]
    assert signed(EXAMPLE._replace(headers={**EXAMPLE.headers, "Accept": "x"})) == signed(EXAMPLE)


def test_parameters_are_signed_as_they_are_meant() -> None:
    """A space is no plus, whatever the address has. Mutation: what the address has."""
    key, headers = AccessKey("i", "s"), {"x-acs-content-sha256": "d"}
    texts = ("a=x%20y&b=%2A~%2F", "b=*~/&a=x+y")
    made = {authorization("GET", f"https://x/?{text}", headers, key) for text in texts}
    assert len(made) == 1


def test_a_key_that_ends_has_a_token() -> None:
    headers = signed(EXAMPLE, Keys("t0ken"))
    assert headers["x-acs-security-token"] == "t0ken"
    assert headers["x-acs-accesskey-id"] == "YourAccessKeyId"
    assert "x-acs-security-token" in headers["Authorization"]
    assert "t0ken" not in repr(Keys("t0ken").key())
    assert "Secret" not in repr(Keys().key())


def test_no_two_requests_have_one_nonce_and_dates_are_the_services() -> None:
    """Mutation: a machine whose clock is hours off is never let in."""
    signer = AcsSigner(Keys())
    assert len({signer.headers(EXAMPLE)["x-acs-signature-nonce"] for _ in range(3)}) == 3
    times = ServerClock(clock=lambda: 5.0)
    signer.follow(times)
    times.note("Thu, 26 Oct 2023 10:22:32 GMT")
    assert signer.headers(EXAMPLE)["x-acs-date"] == "2023-10-26T10:22:32Z"


def test_a_refused_key_is_looked_for_again() -> None:
    keys = Keys()
    assert AcsSigner(keys).refused()
    assert keys.times_refused == 1


ERRORS = [
    (404, "InvalidAccessKeyId.NotFound", NotLoggedIn),
    (400, "SignatureDoesNotMatch", NotLoggedIn),
    (400, "IncompleteSignature", NotLoggedIn),
    (403, "InvalidSecurityToken.Expired", NotLoggedIn),
    (400, "InvalidTimeStamp.Expired", NotLoggedIn),
    (401, "Unauthorized", NotLoggedIn),
    (400, "Throttling.User", Busy),
    (429, "Throttling", Busy),
    (503, "ServiceUnavailable", Busy),
    (500, "InvalidAccessKeyId.NotFound", Busy),
    (403, "QuotaExceeded", OverQuota),
    (400, "OperationDenied.NoStock", OverQuota),
    (400, "JobNotFound", NotThere),
    (404, "EntityNotExist", NotThere),
    (403, "NoPermission", NotAllowed),
    (400, "Forbidden.RAM", NotAllowed),
    (400, "InvalidParameter", Invalid),
    (409, "X", AlreadyThere),
    (599, "X", Unreachable),
]


@pytest.mark.parametrize("status, code, kind", ERRORS)
def test_what_an_answer_means(status: int, code: str, kind: type[Exception]) -> None:
    """By its code: an unknown key is "404", and so would end all jobs. Mutation: by the status."""
    document = {"Code": code, "Message": "it is so", "RequestId": "1"}
    found = error_of_alibaba(status, document, asked="do it", where="x")
    assert type(found) is kind
    assert found.message.startswith("cannot do it: it is so")


def test_a_code_is_passed_on_and_a_pause_is_kept() -> None:
    document = {"Code": "Throttling.User", "Message": "flow control"}
    busy = error_of_alibaba(400, document, asked="do it", where="x", retry_after="7")
    assert isinstance(busy, Busy)
    assert busy.retry_after_s == 7
    assert busy.message.endswith("flow control (Throttling.User)")
    clock = error_of_alibaba(400, {"Code": "InvalidTimeStamp.Expired"}, asked="a", where="x")
    assert "clock" in clock.hint
    for odd in (["x"], "x", None, {"Code": 7}):
        assert type(error_of_alibaba(404, odd, asked="a", where="x")) is NotThere


@pytest.fixture
def there() -> Iterator[Service]:
    made = Service()
    yield made
    made.close()


def handed_out(number: int, **more: Any) -> Given:
    fields = {
        "Code": "Success",
        "AccessKeyId": f"id-{number}",
        "AccessKeySecret": f"secret-{number}",
        "SecurityToken": f"token-{number}",
        "Expiration": "2023-10-26T10:22:32Z",
    }
    return Given(200, json.dumps({**fields, **more}))


def test_a_key_is_fetched_before_it_ends_and_when_it_is_refused(there: Service) -> None:
    """Mutations: a request for each request; a key that is used until it is refused."""
    now = [MOMENT - 1000.0]
    keys = KeyFromUri(f"{there.address}/keys", lambda: now[0])
    there.given = [handed_out(1), handed_out(2), handed_out(3)]
    assert keys.key() == AccessKey("id-1", "secret-1", "token-1")
    assert keys.key().id == "id-1"
    now[0] = MOMENT - KeyFromUri.EARLY_S
    assert keys.key().id == "id-2"
    now[0] = MOMENT - 1000.0
    keys.refused()
    assert keys.key().id == "id-3"
    assert [got.path for got in there.got] == ["/keys"] * 3


def test_who_hands_out_no_key_is_named(there: Service) -> None:
    """Mutation: its "not found" is about a job, which has ended then."""
    keys = KeyFromUri(there.address)
    for given in (Given(404), handed_out(1, AccessKeySecret=""), Given(200, '{"Code": "Failed"}')):
        there.given = [given]
        with pytest.raises(NotLoggedIn) as refused:
            keys.key()
        assert refused.value.where == there.address.partition("://")[2]
    assert "'Failed'" in refused.value.message
    there.given = [Given(599)]
    with pytest.raises(PassingBackendError):
        keys.key()


def test_a_key_is_that_of_the_vendors_variables() -> None:
    references = {"env:A": "a"}
    assert key_of_variables(references.__getitem__, {}) is None
    variables = {"ALIBABA_CLOUD_ACCESS_KEY_ID": "i", "ALIBABA_CLOUD_CREDENTIALS_URI": "http://x"}
    found = key_of_variables(lambda text: text.upper(), variables)
    assert isinstance(found, KeyByReference)
    names = ("ENV:ALIBABA_CLOUD_ACCESS_KEY_ID", "ENV:ALIBABA_CLOUD_ACCESS_KEY_SECRET")
    assert found.key() == AccessKey(*names)
    found = key_of_variables(lambda text: text, {**variables, "ALIBABA_CLOUD_SECURITY_TOKEN": "t"})
    assert found is not None
    assert found.key().token == "env:ALIBABA_CLOUD_SECURITY_TOKEN"
    del variables["ALIBABA_CLOUD_ACCESS_KEY_ID"]
    assert isinstance(key_of_variables(lambda text: text, variables), KeyFromUri)
