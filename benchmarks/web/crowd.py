"""What many browsers hold, without what they draw: ``crowd.py PORT COOKIE EXPERIMENT MANY``.

Each loads the page and all it names, the session, the standing and the table, then reads the stream
of events and takes each apart; it reads the table anew when it is told to. So many real browsers
would need more than two cores for themselves; on other machines, where browsers are, they cost the
search nothing. Each prints ``ready`` when its first event has come; all end when stdin does.

With ``AGAIN`` as a fifth word, each leaves and comes back after so many seconds.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import sys
import threading
import time
import traceback
from typing import Any

_PATIENCE_S = 60.0


class Visitor:
    """One of them."""

    def __init__(self, port: int, cookie: str, experiment: str) -> None:
        self._port = port
        self._head = {"Cookie": cookie, "Accept-Encoding": "gzip"}
        self._base = f"/api/v1/experiments/{experiment}"
        self.events = 0

    def visit(self, seconds: float) -> None:
        """Come, look for a while, and leave; the connection is closed, as a tab is."""
        line = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_PATIENCE_S)
        page = self._get(line, "/").decode()
        for asset in re.findall(r'"(assets/[\w/.-]+)"', page):
            self._get(line, f"/{asset}")
        self._get(line, "/api/v1/session")
        self._get(line, self._base)
        cursor = self._cursor(line)
        stream = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_PATIENCE_S)
        stream.request("GET", f"{self._base}/events?after={cursor}", headers=self._head)
        answer = stream.getresponse()
        assert answer.status == 200, answer.status
        until = time.monotonic() + seconds
        while time.monotonic() < until and (text := answer.readline()):
            if text.startswith(b"data: "):
                self._take(line, json.loads(text[6:]))
        stream.close()
        line.close()

    def _take(self, line: http.client.HTTPConnection, told: dict[str, Any]) -> None:
        if not self.events:
            os.write(1, b"ready\n")  # in one piece, whatever the others do
        self.events += 1
        if told.get("anew"):
            self._cursor(line)

    def _cursor(self, line: http.client.HTTPConnection) -> str:
        plain = {**self._head, "Accept-Encoding": "identity"}
        line.request("GET", f"{self._base}/table", headers=plain)
        body = line.getresponse().read()
        found = re.search(rb'"cursor":"([^"]+)"', body)
        assert found is not None, body[:200]
        return found[1].decode()

    def _get(self, line: http.client.HTTPConnection, path: str) -> bytes:
        head = {**self._head, "Accept-Encoding": "identity"} if path == "/" else self._head
        line.request("GET", path, headers=head)
        answer = line.getresponse()
        body = answer.read()
        assert answer.status == 200, f"{path}: {answer.status}"
        return body


def main() -> None:
    """Let them in; a fault of one ends them all."""
    port, cookie, experiment, many = int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
    again_s = float(sys.argv[5]) if len(sys.argv) > 5 else 1e9
    os.nice(10)  # they are elsewhere

    def stay(one: Visitor) -> None:
        try:
            while True:
                one.visit(again_s)
        except BaseException:  # noqa: BLE001 - the end of a thread, and of all
            traceback.print_exc()
            os._exit(1)

    for _ in range(many):
        one = Visitor(port, cookie, experiment)
        threading.Thread(target=stay, args=(one,), daemon=True).start()
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
