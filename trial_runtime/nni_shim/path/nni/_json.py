"""JSON as NNI's helpers write and read it."""

from __future__ import annotations

import json
from typing import Any


def _plain(value: Any) -> Any:
    """Convert a value that JSON lacks: numpy's scalars and arrays, sets, ones with ``item``."""
    for name in ("tolist", "item"):
        convert = getattr(value, name, None)
        if callable(convert):
            return convert()
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} is no JSON value: {value!r}")


def dump(value: Any, fp: Any = None, **options: Any) -> Any:
    """JSON text of a value, or to ``fp`` if one is given."""
    kept = {key: options[key] for key in ("indent", "sort_keys", "ensure_ascii") if key in options}
    text = json.dumps(value, default=_plain, **kept)
    if fp is None:
        return text
    return fp.write(text)


def load(string: Any = None, *, fp: Any = None, **_options: Any) -> Any:
    """The value of a JSON text, or of the file ``fp``. Nothing is ever unpickled."""
    return json.loads(string if fp is None else fp.read())
