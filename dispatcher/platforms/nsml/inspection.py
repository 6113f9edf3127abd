"""A project of CLOVA NSML looked over before anything is ordered. Nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator

from dispatcher.findings import Finding, Severity
from dispatcher.http_services.errors import NotAllowed, NotLoggedIn, NotThere
from dispatcher.platforms.nsml.jobs import client_of
from dispatcher.platforms.nsml.section import NsmlSection

OK, PROBLEM = Severity.OK, Severity.PROBLEM


def inspect_project(section: NsmlSection) -> Iterator[Finding]:
    """Yield what is found of a section's project. Raises ``BackendError``."""
    client, path = client_of(section), f"/projects/{section.project}"
    asked, keys = f"look at the project {section.project!r}", (("project",),)
    try:
        status = str(client.ask("GET", path, asked=asked).fields.get("status"))
        text = f"the project {section.project!r} is {status} at {client.where}"
        ready = OK if status == "CREATED" else PROBLEM
        yield Finding("project", ready, text, "" if ready is OK else "it takes no runs", keys)
        nas = client.ask("GET", f"{path}/nas", asked="look at its NFS volume").fields
        text = f"runs have the NFS volume {nas.get('nasIp')}:{nas.get('nasPath')}"
        yield Finding("volumes", OK, f"{text}, {nas.get('nasVolumeSize')} GB: is it in 'mounts'?")
    except NotLoggedIn as error:
        where = (("secretKey",), ("accessKey",), ("apiKey",))
        yield Finding("login", PROBLEM, error.message, error.hint, where)
    except (NotThere, NotAllowed) as error:
        yield Finding("project", PROBLEM, error.message, "its page shows its id", keys)
    finally:
        client.close()
