"""The services of Google Cloud that jobs need: that which runs them, Cloud Logging, which has what
they print, Secret Manager, for what an agent must know where no folder is shared, and Cloud
Storage."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from dispatcher.errors import BackendError, PermanentBackendError
from dispatcher.findings import Finding, Severity
from dispatcher.http_services.client import HttpClient
from dispatcher.http_services.errors import AlreadyThere, NotAllowed, NotThere
from dispatcher.http_services.google import EXTRA, DefaultCredentials, error_of_google
from dispatcher.http_services.signing import Signer, TokenSigner
from dispatcher.http_services.token_bucket import TokenBucket
from dispatcher.platforms.google_cloud.section import GoogleService
from dispatcher.platforms.http_jobs.credentials import ReferredToken, address_of

#: Requests that a service takes at once, and in a second; Cloud Logging takes 60 in a minute.
_BURST, _PER_S = 10.0, {"logging": 1.0}

#: A secret goes by itself after this time (seconds), where no head removes it: jobs may wait long.
KEPT_S = 30 * 86400

#: The longest secret (bytes).
MOST_BYTES = 64 << 10


class GoogleApis:
    """Google Cloud's services, asked in the name of one user. Threads: one at a time.

    Args:
        section: says where they are, and who asks.
    """

    def __init__(self, section: GoogleService) -> None:
        self._section = section
        self._signer: Signer = DefaultCredentials()
        if section.token is not None:
            self._signer = TokenSigner(ReferredToken(section.token))
        self._clients: dict[str, HttpClient] = {}
        self._secrets = f"/v1/projects/{section.project}/secrets"

    def of(self, name: str, host: str = "") -> HttpClient:
        """The client of a service.

        Args:
            name: as in ``endpoints`` of the file.
            host: the first part of its address, where that is not the name.

        Raises:
            PermanentBackendError: the certificates that the file names cannot be read.
        """
        if name not in self._clients:
            self._clients[name] = HttpClient(
                address_of(self._section, self._address(name, host), EXTRA),
                self._signer,
                bucket=TokenBucket(_BURST, _PER_S.get(name, 5.0)),
                error_of=error_of_google,
            )
        return self._clients[name]

    def close(self) -> None:
        """Close all connections."""
        for client in self._clients.values():
            client.close()

    def lines(self, id_: str, *, of_service: bool = False, most: int = 200) -> list[str]:
        """The newest lines that a job has printed, the oldest first. They come some seconds late.

        Args:
            id_: by which its service knows it.
            of_service: whether those are asked for that its service has written of it instead.
            most: how many.
        """
        task = f'resource.labels.task_name{"=" if of_service else "!="}"service"'
        body = {
            "resourceNames": [f"projects/{self._section.project}"],
            "filter": f'resource.type="ml_job" AND resource.labels.job_id="{id_}" AND {task}',
            "orderBy": "timestamp desc",
            "pageSize": most,
        }
        asked = f"read the log of the job {id_!r}"
        client = self.of("logging")
        answer = client.ask("POST", "/v2/entries:list", asked=asked, body=body, is_repeatable=True)
        lines: list[str] = []
        for entry in reversed(answer.fields.get("entries") or ()):
            payload = entry.get("jsonPayload") or {}
            lines += str(entry.get("textPayload") or payload.get("message") or "").splitlines()
        return lines

    def keep_secret(self, name: str, text: str, labels: Mapping[str, str]) -> str:
        """Keep a secret, which may be there already; returns the address by which its job reads it.

        Args:
            name: of the job.
            text: in base64.
            labels: of the job.
        """
        if len(text) * 3 // 4 > MOST_BYTES:
            raise PermanentBackendError(
                f"what an agent must know has {len(text) * 3 // 4} bytes, and a secret has "
                f"{MOST_BYTES >> 10} KiB at most",
                hint="shorten 'trialEnvironment', or name a 'sharedFolder'",
            )
        body = {"replication": {"automatic": {}}, "ttl": f"{KEPT_S}s", "labels": dict(labels)}
        asked, client = f"keep the secret of the job {name!r}", self.of("secretmanager")
        with contextlib.suppress(AlreadyThere):
            client.ask("POST", self._secrets, asked=asked, query={"secretId": name}, body=body)
        version, path = {"payload": {"data": text}}, f"{self._secrets}/{name}"
        client.ask("POST", f"{path}:addVersion", asked=asked, body=version, secrets=[text])
        return f"{self._address('secretmanager')}{path}/versions/latest:access"

    def forget_secret(self, name: str) -> None:
        """Remove the secret of a job, if it is there."""
        asked = f"remove the secret of the job {name!r}"
        with contextlib.suppress(NotThere):
            self.of("secretmanager").ask("DELETE", f"{self._secrets}/{name}", asked=asked)

    def bucket(self, url: str, key: str) -> Finding:
        """Look at a folder of a bucket: jobs do so only when they begin.

        Args:
            url: ``gs://BUCKET/FOLDER``.
            key: of the file, that names it.
        """
        bucket, _, folder = url.removeprefix("gs://").partition("/")
        query: dict[str, str | int] = {"maxResults": 1}
        query["prefix"] = f"{folder.rstrip('/')}/" if folder else ""
        path, asked, client = f"/storage/v1/b/{bucket}/o", f"look at {url}", self.of("storage")
        try:
            items = client.ask("GET", path, asked=asked, query=query).fields.get("items")
        except NotAllowed as error:  # jobs have another account
            return Finding("bucket", Severity.NOTE, error.message, error.hint, ((key,),))
        except BackendError as error:
            return Finding("bucket", Severity.PROBLEM, error.message, error.hint, ((key,),))
        if items:
            text = f"{url} has files already, and what trials write lies beside them"
            return Finding("bucket", Severity.NOTE, text, keys=((key,),))
        return Finding("bucket", Severity.OK, f"{url} is there, and empty")

    def _address(self, name: str, host: str = "") -> str:
        own = next((url for key, url in self._section.endpoints.items() if key == name), "")
        return own or f"https://{host or name}.googleapis.com"
