"""``python -m nfs_setup.verify``: a request as JSON a line, an answer a line, until stdin ends.

One process for many requests, where what carries them can: asked and answered within a
millisecond. When the process that asks is gone, what is under way is given up, and what was
begun by way of this process is removed.
"""

from __future__ import annotations

import contextlib
import json
import queue
import signal
import sys
import threading
from typing import Any

from nfs_setup.errors import RequestRefused, SetupError
from nfs_setup.verify.files import is_ours
from nfs_setup.verify.place import end
from nfs_setup.verify.probes import answer

_MOST_BYTES = 1 << 20


def main() -> int:
    """Answer requests until stdin ends. Returns the exit code."""
    lines: queue.Queue[bytes | None] = queue.Queue(maxsize=16)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=_listen, args=(lines,), daemon=True).start()
    begun: list[tuple[str, str]] = []
    try:
        while (line := lines.get()) is not None:
            reply = _answer(line, begun)
            sys.stdout.write(json.dumps(reply) + "\n")
            sys.stdout.flush()
    except KeyboardInterrupt:
        pass
    except BrokenPipeError:
        pass
    for path, name in begun:
        with contextlib.suppress(OSError):
            end(path, name)
    return 0


def _listen(lines: queue.Queue[bytes | None]) -> None:
    """Pass lines on; at their end, interrupt what is under way, be it a system call."""
    while True:
        line = sys.stdin.buffer.readline(_MOST_BYTES)
        if not line:
            break
        lines.put(line)
    main_thread = threading.main_thread().ident
    assert main_thread is not None
    signal.pthread_kill(main_thread, signal.SIGINT)
    # A signal that comes just before the main thread begins to wait for a line does not end that
    # wait; something to take does. Where the queue is full, the main thread does not wait.
    with contextlib.suppress(queue.Full):
        lines.put_nowait(None)


def _answer(line: bytes, begun: list[tuple[str, str]]) -> dict[str, Any]:
    """Return the answer to one line. ``begun`` gets the folders that are there because of it."""
    try:
        document = json.loads(line)
    except ValueError as error:
        return {"error": RequestRefused(f"is no JSON: {error}", where="request").plain()}
    makes = isinstance(document, dict) and document.get("make") is True
    if makes and is_ours(str(document.get("name"))):
        begun.append((str(document.get("path")), document["name"]))
    try:
        reply = answer(document)
    except SetupError as error:
        return {"error": error.plain()}
    if document["do"] == "end" and "facts" in reply:
        begun.clear()
    return reply


if __name__ == "__main__":
    sys.exit(main())
