"""A request in, facts out: what runs on each machine. No state is kept between two requests."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from nfs_setup.errors import RequestRefused
from nfs_setup.verify import churn, habits, locks, pace, place, views
from nfs_setup.verify.facts import Failure, Probes
from nfs_setup.verify.files import code_of, is_ours

PROBES: Probes = {
    **place.PROBES,
    **habits.PROBES,
    **pace.PROBES,
    **views.PROBES,
    **churn.PROBES,
    **locks.PROBES,
}

#: Probes that may name a folder that is not a verification's own.
_ANYWHERE = place.PROBES.keys()


def answer(document: Any) -> dict[str, Any]:
    """Turn ``{"verb": "probe", "do": …, …}`` into ``{"facts": …}`` or ``{"failed": …}``. Blocks
    as long as the file system does.

    Raises:
        RequestRefused: for an unknown probe, wrong values, or a path outside of a
            verification's own folder.
    """
    if not isinstance(document, Mapping):
        raise RequestRefused("is no JSON object", where="request")
    values = {k: v for k, v in document.items() if k not in ("verb", "do")}
    what = document.get("do")
    if not isinstance(what, str) or what not in PROBES:
        raise RequestRefused("has no probe of this name", where="request")
    try:
        inspect.signature(PROBES[what]).bind(**values)
    except TypeError as error:
        raise RequestRefused(f"{what}: {error}", where="request") from None
    _stay_inside(what, values)
    try:
        return {"facts": asdict(PROBES[what](**values))}
    except OSError as error:
        return {"failed": asdict(Failure(what, code_of(error), error.strerror or str(error)))}


def _stay_inside(what: str, values: Mapping[str, Any]) -> None:
    if what in _ANYWHERE:
        if "name" in values and not is_ours(str(values["name"])):
            raise RequestRefused("is no name of a verification's folder", where="request")
        return
    for value in values.values():
        for path in _paths(value):
            parts = path.split("/")
            if ".." in parts or not any(map(is_ours, parts)) or os.path.normpath(path) != path:
                raise RequestRefused("leaves the verification's folder", where="request")


def _paths(value: Any) -> list[str]:
    """Return all that looks like a path: alone, in a list, or as the values of an object."""
    found = value.values() if isinstance(value, dict) else value
    found = [found] if isinstance(found, str) else found
    if not isinstance(found, (list, type({}.values()))):
        return []
    return [one for one in found if isinstance(one, str) and "/" in one]
