"""Programs that fetch credentials, as kubeconfigs name them (``users[].user.exec``).

The contract is that of ``client.authentication.k8s.io``: the program gets a document in a variable
and prints another one. It has no terminal here, so that one which wants to ask somebody is refused.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import IO, Any

from dispatcher.http_services.credentials import Certificate, Proof, bearer
from dispatcher.platforms.kubernetes.api.errors import NotLoggedIn

GROUP = "client.authentication.k8s.io"

#: Versions of the contract that are spoken.
VERSIONS = (f"{GROUP}/v1", f"{GROUP}/v1beta1")

#: Longest run of such a program (seconds): one that asks a login service over the network.
LIMIT_S = 60.0

#: Most that one may print (bytes), and how much of its last line of errors is shown (characters).
MOST_BYTES = 1 << 20
MOST_SHOWN = 300


@dataclass(frozen=True)
class ExecPlugin:
    """One program, and how it is called.

    Attributes:
        version: of the contract, one of :data:`VERSIONS`.
        command: its name or path.
        arguments: further ones.
        environment: variables beside ours.
        hint: what its author says to those who lack it.
        cluster: of the server, for programs that ask for it; None: it does not.
        where: the place in the kubeconfig, for people.
    """

    version: str
    command: str
    arguments: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    hint: str = ""
    cluster: Mapping[str, Any] | None = field(default=None, repr=False)
    where: str = ""

    def fetch(self) -> tuple[Proof, float | None]:
        """Run it; the proof, and until when it is valid (seconds since the epoch). Blocks for
        :data:`LIMIT_S` at most. Raises ``NotLoggedIn``."""
        output = self._run()
        try:
            document = json.loads(output)
            status = document["status"]
            version = document["apiVersion"]
            if not isinstance(status, dict):
                raise TypeError
        except (ValueError, KeyError, TypeError, RecursionError):
            raise self._error("printed no ExecCredential with a status") from None
        if version != self.version:
            raise self._error(f"answered in {str(version)[:60]!r}, and was asked in {self.version}")
        return self._proof(status), self._until(status.get("expirationTimestamp"))

    def _run(self) -> bytes:
        spec: dict[str, Any] = {"interactive": False}
        if self.cluster is not None:
            spec["cluster"] = self.cluster
        asked = {"apiVersion": self.version, "kind": "ExecCredential", "spec": spec}
        variables = {"KUBERNETES_EXEC_INFO": json.dumps(asked)}
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            try:
                ran = subprocess.run(
                    [self.command, *self.arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=errors,
                    env={**os.environ, **self.environment, **variables},
                    timeout=LIMIT_S,
                    check=False,
                    start_new_session=True,  # it shall find no terminal to ask at
                )
            except subprocess.TimeoutExpired:
                raise self._error(f"has not answered within {LIMIT_S:.0f} s") from None
            except OSError as error:
                reason = error.strerror or str(error)
                raise self._error(f"cannot be run: {reason}", hint=self.hint) from error
            printed = _content(output)
            if ran.returncode:
                why = _last_line(_content(errors))
                raise self._error(f"exited with {ran.returncode}{': ' if why else ''}{why}")
        if len(printed) > MOST_BYTES:
            raise self._error(f"printed more than {MOST_BYTES >> 20} MiB")
        return printed

    def _proof(self, status: Mapping[str, Any]) -> Proof:
        token = status.get("token")
        chain, key = status.get("clientCertificateData"), status.get("clientKeyData")
        if bool(chain) != bool(key):
            raise self._error("printed a certificate without its key, or a key alone")
        if not token and not chain:
            raise self._error("printed neither a token nor a certificate")
        authorization = bearer(str(token), self._name) if token else ""
        if not chain:
            return Proof(authorization)
        return Proof(authorization, Certificate(str(chain).encode(), str(key).encode()))

    def _until(self, text: object) -> float | None:
        if not text:
            return None
        try:
            return datetime.fromisoformat(str(text)).timestamp()
        except ValueError:
            raise self._error("printed an expirationTimestamp that is none") from None

    @property
    def _name(self) -> str:
        return f"{self.where}: {self.command}" if self.where else self.command

    def _error(self, text: str, *, hint: str = "") -> NotLoggedIn:
        return NotLoggedIn(text, hint=hint or "log in to the cluster again", where=self._name)


def _content(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read(MOST_BYTES + 1)


def _last_line(output: bytes) -> str:
    lines = output.decode("utf-8", "replace").strip().splitlines()
    last = lines[-1] if lines else ""
    return "".join(c if c.isprintable() else " " for c in last)[:MOST_SHOWN]
