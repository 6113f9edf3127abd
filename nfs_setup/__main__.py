"""``python -m nfs_setup``: a request as JSON on stdin, a report or an error as JSON on stdout.

This is how the same code runs on a host that has nothing but Python: no option is parsed, no
text is made, and nothing is asked. The exit code is 0, or 1 with ``{"error": …}``.
"""

from __future__ import annotations

import json
import sys

from nfs_setup.errors import RequestRefused, SetupError
from nfs_setup.local_host import LocalHost
from nfs_setup.request import request_of
from nfs_setup.verbs import perform
from nfs_setup.verify.probes import answer as probed

#: A request has a few hundred bytes.
_MOST_BYTES = 1 << 20


def main() -> int:
    """Answer one request. Returns the exit code."""
    try:
        try:
            document = json.loads(sys.stdin.buffer.read(_MOST_BYTES))
        except ValueError as error:
            raise RequestRefused(f"is no JSON: {error}", where="request") from None
        if isinstance(document, dict) and document.get("verb") == "probe":
            answer = probed(document)  # looks at a share, and is no change of the machine
        else:
            answer = perform(LocalHost(), request_of(document)).plain()
    except SetupError as error:
        answer = {"error": error.plain()}
    json.dump(answer, sys.stdout)
    sys.stdout.write("\n")
    return 1 if "error" in answer else 0


if __name__ == "__main__":
    sys.exit(main())
