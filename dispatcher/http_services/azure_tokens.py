"""Tokens for Azure's services. Each is one plain request: of a service principal to the login
service, or of this machine to the endpoint by which it knows its own identity. Both need no library
of Azure's."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from dispatcher.errors import PermanentBackendError
from dispatcher.http_services.client import HttpAddress, HttpClient
from dispatcher.http_services.credentials import FetchedProof, Proof, bearer
from dispatcher.http_services.errors import NotLoggedIn, Unreachable

#: Where machines of Azure ask who they are, by a file that has a word of Azure's on such a machine
#: alone: on others that question waits in vain.
MACHINE_ENDPOINT = "http://169.254.169.254"
MACHINE_MARK = Path("/sys/class/dmi/id/chassis_asset_tag")
_AZURE = "7783-7084-3265-9085-8269-3286-77"

_LOGIN = "https://login.microsoftonline.com"
_FORM = "application/x-www-form-urlencoded"
_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_PRINCIPAL = "AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET"

#: What to do about a token that cannot be had.
LOG_IN = (
    f"set {_PRINCIPAL} of a service principal, or write 'token: file:PATH' with what `az account "
    "get-access-token` prints"
)


class TokenRequest(NamedTuple):
    """One request for a token: ``server`` and ``path``, ``query``, ``headers``, and the ``form`` of
    a POST; None: it is a GET. ``secrets`` are in no error; ``proxied``: whether variables that name
    proxies count."""

    server: str
    path: str
    query: Mapping[str, str | int]
    headers: Mapping[str, str]
    form: Mapping[str, str] | None = None
    secrets: tuple[str, ...] = ()
    proxied: bool = True


def default_credentials(
    audience: str,
    authorities: str = "",
    environment: Mapping[str, str] = os.environ,
    clock: Callable[[], float] = time.time,
) -> FetchedProof:
    """Return the credentials that the environment names, else those of this machine. Nothing is
    asked yet; tokens are fetched anew before they end, and once when one is refused.

    Args:
        audience: the service that tokens are for, as ``https://management.azure.com``.
        authorities: certificates that the login service's own must be signed by, PEM; empty: the
            system's.
        environment: variables.
        clock: seconds since the epoch.
    """

    def fetch() -> tuple[Proof, float | None]:
        return _fetched(token_request(audience, environment), authorities, clock)

    return FetchedProof(fetch, clock)


def token_request(audience: str, environment: Mapping[str, str] = os.environ) -> TokenRequest:
    """The request for a token, as Azure's own libraries look for one: a service principal by its
    secret, a workload by its file, the identity of this machine. May read a file.

    Args:
        audience: the service that it is for.
        environment: variables.

    Raises:
        NotLoggedIn: nothing says who we are.
    """
    tenant, client = (environment.get(f"AZURE_{word}_ID", "") for word in ("TENANT", "CLIENT"))
    secret = environment.get("AZURE_CLIENT_SECRET", "")
    file = environment.get("AZURE_FEDERATED_TOKEN_FILE", "")
    if tenant and client and (secret or file):
        form = {"grant_type": "client_credentials", "client_id": client}
        form["scope"] = f"{audience}/.default"
        if secret:
            form["client_secret"] = secret
        else:
            secret = _read(Path(file))
            form |= {"client_assertion_type": _ASSERTION, "client_assertion": secret}
        path = f"/{quote(tenant, safe='')}/oauth2/v2.0/token"
        return TokenRequest(_login_of(environment), path, {}, {}, form, (secret,))
    if secret or (tenant and client):
        missing = [
            f"AZURE_{word}"
            for word in ("TENANT_ID", "CLIENT_ID", "CLIENT_SECRET")
            if not environment.get(f"AZURE_{word}")
        ]
        text = f"half of a service principal is in the environment: {', '.join(missing)} is missing"
        raise NotLoggedIn(text, hint=LOG_IN)
    return _own_identity(audience, client, environment)


def _own_identity(audience: str, client: str, environment: Mapping[str, str]) -> TokenRequest:
    """The request by which this machine is asked for a token of its own."""
    query: dict[str, str | int] = {"resource": f"{audience}/"}
    query |= {"client_id": client} if client else {}
    if (address := environment.get("IDENTITY_ENDPOINT")) is not None:
        version = "2019-08-01"
        header = {"X-IDENTITY-HEADER": environment.get("IDENTITY_HEADER", "")}
    elif (address := environment.get("MSI_ENDPOINT")) is not None:
        version = "2017-09-01"
        header = {"Secret": environment.get("MSI_SECRET", "")}
    else:
        if not _is_of_azure():
            raise NotLoggedIn("nothing says who we are at Azure", hint=LOG_IN)
        address = f"{MACHINE_ENDPOINT}/metadata/identity/oauth2/token"
        version = "2018-02-01"
        header = {"Metadata": "true"}
    scheme, _, rest = address.partition("://")
    host, slash, path = rest.partition("/")
    query["api-version"] = version
    secrets = tuple(header.values())
    return TokenRequest(f"{scheme}://{host}", f"{slash}{path}", query, header, None, secrets, False)


def _login_of(environment: Mapping[str, str]) -> str:
    """The login service. A secret goes there, so it is no other than one by https."""
    address = environment.get("AZURE_AUTHORITY_HOST", "").rstrip("/") or _LOGIN
    address = address if "://" in address else f"https://{address}"
    if not address.startswith(("https://", "http://127.0.0.1:")):
        text = f"AZURE_AUTHORITY_HOST is {address}, and the secret would go there unencrypted"
        raise NotLoggedIn(text, hint="name it by https")
    return address


def _is_of_azure() -> bool:
    try:
        return MACHINE_MARK.read_text("ascii", "replace").strip() == _AZURE
    except OSError:
        return False


def _read(path: Path) -> str:
    try:
        return path.read_text("ascii", "replace").strip()
    except OSError as error:
        text = f"AZURE_FEDERATED_TOKEN_FILE cannot be read: {error.strerror or error}"
        raise NotLoggedIn(text, where=str(path)) from error


def _fetched(
    request: TokenRequest, authorities: str, clock: Callable[[], float]
) -> tuple[Proof, float | None]:
    """A token, and until when it is valid (seconds since the epoch by our own clock)."""
    proxies = os.environ if request.proxied else {}
    address = HttpAddress(request.server, authorities, origin="'caFile'")
    client = HttpClient(address, environment=proxies)
    try:
        answer = client.ask(
            "GET" if request.form is None else "POST",
            request.path,
            asked="fetch a token",
            query=request.query,
            body=None if request.form is None else urlencode(request.form).encode(),
            kind=_FORM,
            headers=request.headers,
            is_repeatable=True,
            secrets=request.secrets,
        )
        left_s = _left_s(answer.fields, client.times.now())
    except PermanentBackendError as error:
        text = error.message.partition(" Trace ID:")[0]
        raise NotLoggedIn(text, hint=LOG_IN, where=error.where) from error
    finally:
        client.close()
    if not answer.fields.get("access_token"):
        raise Unreachable("cannot fetch a token: the answer has none", where=client.where)
    proof = Proof(bearer(str(answer.fields["access_token"]), client.where))
    return proof, None if left_s is None else clock() + left_s


def _left_s(fields: Mapping[str, Any], now: float) -> float | None:
    """How long a token is valid (seconds), by a duration, or a moment of the service's clock."""
    for key, since in (("expires_in", 0.0), ("expires_on", now)):
        with contextlib.suppress(KeyError, ValueError, TypeError, OverflowError):
            return max(0.0, float(fields[key]) - since)
    return None
