"""A team of a DLTS cluster looked over before anything is ordered: whether the dashboard knows us,
and whether the team has what the file asks for. Nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dispatcher.findings import Finding, Severity
from dispatcher.http_services.errors import NotLoggedIn, NotThere
from dispatcher.platforms.dlts.jobs import DltsJobs
from dispatcher.platforms.dlts.section import DltsSection

OK, NOTE, PROBLEM = Severity.OK, Severity.NOTE, Severity.PROBLEM


def inspect_team(section: DltsSection) -> Iterator[Finding]:
    """Yield what is found of a section's team, as far as it can be asked. Raises
    ``BackendError``."""
    jobs = DltsJobs(section, "bequeath-inspects")
    try:
        types = jobs.gpu_types()
        text = f"{jobs.where} has the team {section.team!r} in the cluster {section.cluster!r}"
        yield Finding("cluster", OK, text)
        if section.address.startswith("http:"):
            text = "the password stands in each address that is asked, unencrypted"
            yield Finding("cluster", NOTE, text, "write https", (("address",),))
        yield from _gpus(section, types)
        jobs.list()
    except NotLoggedIn as error:
        keys = (("password",), ("email",))
        yield Finding("login", PROBLEM, error.message, error.hint, keys)
    except NotThere as error:
        hint = "the dashboard shows both, above the list of jobs"
        yield Finding("cluster", PROBLEM, error.message, hint, (("team",), ("cluster",)))
    finally:
        jobs.close()


def _gpus(section: DltsSection, types: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what is wrong with the GPUs that a job asks for."""
    wanted, there = section.gpu_type, ", ".join(sorted(types)) or "none"
    if section.gpus and not types:
        text = f"the team {section.team!r} has no GPUs, and a job asks for {section.gpus}"
        yield Finding("quota", PROBLEM, text, "it would wait for ever", (("gpus",), ("team",)))
        return
    if wanted is not None and wanted not in types:
        text = f"the team {section.team!r} has no GPUs of the type {wanted!r}"
        yield Finding("quota", PROBLEM, text, f"there are {there}", (("gpuType",),))
        return
    about = types.get(wanted or next(iter(types), ""))
    most = about.get("num_gpu_per_node") if isinstance(about, Mapping) else None
    if isinstance(most, int) and section.gpus > most:
        text = f"a machine there has {most} GPUs, and a job asks for {section.gpus}"
        yield Finding("quota", PROBLEM, text, "it would wait for ever", (("gpus",),))
