"""``nni.common.serializer`` of v2.5 and later: JSON and ``trace``, without anything pickled."""

from __future__ import annotations

from typing import Any

from .._json import dump, load  # noqa: TID252 - this file is nni.common… to its users

__all__ = ["dump", "is_traceable", "load", "trace"]


def trace(cls_or_func: Any = None, **_options: Any) -> Any:
    """Return the decorated object: here nothing has to be rebuilt from its arguments."""
    return cls_or_func if cls_or_func is not None else trace


def is_traceable(_obj: Any, must_be_instance: bool = False) -> bool:
    """Return false: no object remembers its arguments."""
    return False
