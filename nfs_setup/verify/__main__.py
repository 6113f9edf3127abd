"""``python -m nfs_setup.verify``: a request as JSON a line, an answer a line, until stdin ends.

One process for many requests, where what carries them can: asked and answered within a
millisecond. When whoever asks is gone, what was begun by way of it is removed.
"""

from __future__ import annotations

import contextlib
import json
import sys
from typing import Any

from nfs_setup.errors import RequestRefused, SetupError
from nfs_setup.verify.probe_place import end
from nfs_setup.verify.probes import answer

_MOST_BYTES = 1 << 20


def main() -> int:
    """See above. Returns the exit code."""
    begun: tuple[str, str] | None = None
    while True:
        line = sys.stdin.buffer.readline(_MOST_BYTES)
        if not line:
            break
        try:
            document = json.loads(line)
        except ValueError as error:
            said = _refused(RequestRefused(f"is no JSON: {error}", where="request"))
        else:
            said = _answer(document)
            if "error" not in said and document.get("make"):
                begun = (document["path"], document["name"])
            if "facts" in said and document["do"] == "end":
                begun = None
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()
    if begun is not None:
        with contextlib.suppress(OSError):
            end(*begun)
    return 0


def _answer(document: Any) -> dict[str, Any]:
    try:
        return answer(document)
    except SetupError as error:
        return _refused(error)


def _refused(error: SetupError) -> dict[str, Any]:
    return {"error": {"kind": type(error).__name__, **vars(error)}}


if __name__ == "__main__":
    sys.exit(main())
