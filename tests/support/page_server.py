"""Serves the web page's files and a made-up search, for tests of the page in a browser.

The interface is that of ``bequeath web``; what cannot be had of the real one stands here: 50,000
trials in a second, a stream that breaks when a test says so, answers that fail. No sign-in.
"""

from __future__ import annotations

import functools
import gzip
import json
import mimetypes
import re
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec

from dispatcher import queries
from dispatcher.queries import ExperimentListing
from tests.support.made_search import MadeSearch

STATIC = Path(__file__).parents[2] / "dispatcher" / "web" / "static"

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; base-uri 'self'; form-action 'self'; "
    "frame-ancestors 'self'"
)
PAGES = re.compile(
    r"/(leaderboard|settings|e/[^/]+(/(trials|lineage|waits|hosts|plots|compare|checks)|/t/\d+)?)?"
)


class PageServer:
    """One experiment behind the page, until the block is left.

    Args:
        search: what it shows.
        prefix: the path that all addresses begin with.
        scope: ``change`` or ``read``.
        log: what each trial has written.
    """

    def __init__(
        self, search: MadeSearch, *, prefix: str = "", scope: str = "change", log: bytes = b""
    ) -> None:
        self.search = search
        self.prefix = prefix
        self.scope = scope
        self.log = log
        self.inputs: list[dict[str, Any]] | None = None
        self.model: Callable[[Any], Any] | None = None
        self.head = True
        self.deleted = False
        self.streams = True
        self.cursor = 0
        self.changes: list[tuple[int, list[int]]] = []
        self.written: list[tuple[str, str, Any]] = []
        self.asked: list[str] = []
        self.at_once: dict[str, int] = {}
        self.most_at_once: dict[str, int] = {}
        self.others: list[ExperimentListing] = []
        self.shares: dict[str, dict[str, Any]] = {}
        self.news = threading.Condition()
        self.closing = False
        self._kept: tuple[int, bytes] | None = None
        self._server: ThreadingHTTPServer | None = None
        self.port = 0

    @property
    def url(self) -> str:
        """The address of the list of experiments."""
        return f"http://127.0.0.1:{self.port}{self.prefix}/"

    def __enter__(self) -> PageServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin to serve, at the port of last time if there was one."""
        self.closing = False
        page = self

        class Handler(_Handler):
            server_of_page = page

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64
            allow_reuse_address = True

        self._server = Server(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        """End it with all of its streams."""
        assert self._server is not None
        with self.news:
            self.closing = True
            self.news.notify_all()
        self._server.shutdown()
        self._server.server_close()

    def tell(self, *trials: int) -> None:
        """Let readers know that these trials have changed."""
        with self.news:
            self.cursor += 1
            self.changes.append((self.cursor, list(trials)))
            self.news.notify_all()

    def annotate(self, method: str, path: str, body: Any) -> dict[str, Any]:
        """What is written beside a trial or the experiment."""
        *above, what = re.sub(r"(notes)/.*", r"\1", path.removeprefix("/")).split("/")
        one: Any = self.search.trials[int(above[1])] if above else self.search
        if what == "pin":
            one.pinned = method == "PUT"
        elif what == "star":
            one.starred = method == "PUT"
        elif what == "tags":
            one.tags = tuple(sorted({*one.tags, *body["add"]} - {*body["remove"]}))
        elif method == "POST":
            one.notes = [*one.notes, body["text"]]
        else:
            one.notes = []
        self.tell(*([one.trial] if above else []))
        told = {"trial": None, "tags": one.tags, "starred": one.starred, "notes": []}
        return told | ({"pinned": one.pinned} if what == "pin" else {})

    def share(self, method: str, path: str, body: Any) -> dict[str, Any]:
        """What is done to links that only read."""
        if method == "DELETE":
            return {"revoked": self.shares.pop(path.rpartition("/")[2]) is not None}
        if path == "/token":
            return {"renewed": True}
        now = time.time()
        self.shares[body["name"]] = {
            "share": body["name"], "created_at": now, "expires_at": now + 86_400 * body["days"],
            "logs": body["logs"], "over": False,
        }  # fmt: skip
        return {"share": body["name"], "token": "t" * 43, "path": f"/login?share={'t' * 43}"}

    def lose_head(self) -> None:
        """From now on no head answers."""
        with self.news:
            self.head = False
            self.news.notify_all()

    def delete(self) -> None:
        """From now on there is no experiment."""
        with self.news:
            self.deleted = True
            self.news.notify_all()

    def changed_after(self, cursor: int) -> dict[str, Any]:
        """What ``/changes`` answers."""
        trials = sorted({one for at, many in self.changes if at > cursor for one in many})
        rows = [self.search.trials[one].row() for one in trials]
        return {"cursor": str(self.cursor), "anew": False, "more": False, "trials": rows}

    def table(self) -> bytes:
        """The table, encoded once for each state."""
        if self._kept is None or self._kept[0] != self.cursor:
            told = self.search.table(str(self.cursor))
            self._kept = (self.cursor, gzip.compress(msgspec.json.encode(told), 6))
        return self._kept[1]


class _Handler(BaseHTTPRequestHandler):
    server_of_page: PageServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: tests look at ``asked``."""

    def do_GET(self) -> None:
        """Serve the page, a file of it, or an answer."""
        page = self.server_of_page
        split = urlsplit(self.path)
        path = unquote(split.path)
        page.asked.append(self.path)
        if not path.startswith(page.prefix + "/"):
            self._problem(404, "no-page", "this is not below the prefix")
            return
        path = path.removeprefix(page.prefix)
        query = {name: values[-1] for name, values in parse_qs(split.query).items()}
        if path.startswith("/assets/"):
            self._asset(STATIC / path.removeprefix("/assets/"))
        elif path.startswith("/api/v1"):
            page.at_once[path] = page.at_once.get(path, 0) + 1
            seen = max(page.most_at_once.get(path, 0), page.at_once[path])
            page.most_at_once[path] = seen
            try:
                self._answer(path.removeprefix("/api/v1"), query)
            finally:
                page.at_once[path] -= 1
        elif PAGES.fullmatch(path):
            text = (STATIC / "index.html").read_text()
            text = text.replace("<head>", f'<head>\n<base href="{page.prefix}/">', 1)
            self._send(200, text.encode(), "text/html; charset=utf-8")
        else:
            self._problem(404, "no-page", "there is no such page")

    def _write(self) -> None:
        page = self.server_of_page
        size = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(size) or b"null")
        path = unquote(urlsplit(self.path).path).removeprefix(page.prefix + "/api/v1")
        if (
            self.headers.get("X-Bequeath") != "1"
            or self.headers.get("Sec-Fetch-Site") != "same-origin"
        ):
            self._problem(403, "refused", "this request did not come from the page")
            return
        if page.scope != "change":
            self._problem(403, "refused", "this link only reads")
            return
        page.written.append((self.command, path, body))
        rest = path.removeprefix(f"/experiments/{page.search.ident}")
        answers: dict[str, Callable[[], dict[str, Any]]] = {
            "POST /stop": lambda: {
                "kind": "now", "stopped": False, "allocations": [], "troubles": []},
            "POST /kill": lambda: {"processes": [1, 2], "allocations": [], "troubles": []},
            "POST /resume": lambda: {"folder": "/f", "pid": 4711},
            "PATCH ": lambda: {"key": body["key"], "running": True, "warning": "", "beyond": 0},
            "POST /trials": lambda: {"trial": len(page.search.trials)},
            "POST /trials/kill": lambda: {
                "trials": {str(one): "running" for one in body["trials"]}, "answers": []},
            "POST /weights/gc": lambda: {"weights": [{"trial": 3}, {"trial": 4}], "bytes": 84},
            "POST /verify": lambda: {
                "ok": True, "events": 73716, "trials": len(page.search.trials), "damage": [],
                "broken_at": "", "differences": [], "mended": ""},
        }  # fmt: skip
        make = answers.get(f"{self.command} {rest}")
        if path.startswith("/shares") or path == "/token":
            make = functools.partial(page.share, self.command, path, body)
        if re.fullmatch(r"(/trials/\d+)?/(star|tags|pin|notes(/\d+)?)", rest):
            make = functools.partial(page.annotate, self.command, rest, body)
        asked = re.fullmatch(r"POST /trials/(\d+)/infer", f"{self.command} {rest}")
        if asked and page.model is not None:
            self._json({
                "experiment": page.search.ident, "trial": int(asked[1]),
                "answer": page.model(body["request"]),
                "took_s": 0.01, "loaded_s": 0.0, "printed": "",
            })  # fmt: skip
        elif make is None:
            self._problem(404, "no-page", f"nothing answers {rest}")
        else:
            self._json({"experiment": page.search.ident, **make()})

    do_POST = do_PUT = do_PATCH = do_DELETE = _write  # noqa: N815 - http.server's names

    def _answer(self, path: str, query: dict[str, str]) -> None:
        page, search = self.server_of_page, self.server_of_page.search
        if path == "/session":
            told = {"version": "0.1.0", "scope": page.scope, "token": "…ab12", "user": "me"}
            self._json({**told, "logs": True})
            return
        if path == "/experiments":
            listed = [search.listing("running" if page.head else "interrupted").to_json()]
            self._json({"experiments": listed, "others": 1})
            return
        if path == "/shares":
            self._json({"shares": list(page.shares.values())})
            return
        if path == "/leaderboard":
            chosen = queries.BoardFilter(
                **{name: text for name, text in query.items() if name not in ("group", "starred")},
                starred="starred" in query,
            )
            group = queries.BoardGroup(query.get("group", "dataset"))
            boards = queries.leaderboard([search.listing(), *page.others], group, chosen)
            self._json({"group": group, "boards": [one.to_json() for one in boards]})
            return
        rest = path.removeprefix(f"/experiments/{search.ident}")
        if rest == path or page.deleted:
            self._problem(
                404, "no-experiment", "no experiment goes by that name", "look at the list"
            )
        elif rest == "":
            self._json(search.standing(head=page.head))
        elif rest == "/table":
            self._send(200, page.table(), "application/json", {"Content-Encoding": "gzip"})
        elif rest == "/history":
            self._json(search.lives())
        elif rest == "/events":
            self._events(int(query.get("after") or 0))
        elif rest == "/changes":
            with page.news:
                page.news.wait_for(
                    lambda: page.closing or page.cursor > int(query["after"]), float(query["wait"])
                )
            self._json(page.changed_after(int(query["after"])))
        elif rest == "/curves":
            wanted = [int(one) for one in query["trials"].split(",")]
            curves = [
                {"trial": one, "steps": list(range(len(search.trials[one].curve))),
                 "values": search.trials[one].curve} for one in wanted
            ]  # fmt: skip
            self._json({"metric": "default", "curves": curves})
        elif rest == "/curves/bands":
            self._json(search.bands())
        elif rest == "/plots/slots":
            self._json(search.slots_then())
        elif rest == "/weights/plan":
            self._json({"weights": [{"trial": 3}, {"trial": 4}], "bytes": 8_400_000})
        elif match := re.fullmatch(
            r"/trials/(\d+)(/log/std(?:out|err)|/files|/tensors|/infer)?", rest
        ):
            self._trial(int(match[1]), match[2], query)
        elif rest == "/trials":
            self._json({"trials": [search.trials[1].summary().to_json()]})
        else:
            self._problem(404, "no-page", f"nothing answers {rest}")

    def _trial(self, number: int, what: str | None, query: dict[str, str]) -> None:
        page = self.server_of_page
        if number >= len(page.search.trials):
            self._problem(
                404, "no-trial", f"the experiment has no trial {number}", "look at the table"
            )
        elif what is None:
            self._json(page.search.shown(number))
        elif what == "/tensors":
            self._json(page.search.tensors(number))
        elif what == "/infer":
            offered = page.model is not None
            self._json({
                "experiment": page.search.ident, "trial": number, "available": offered,
                "why": "" if offered else "these trials have no demo", "hint": "",
                "inputs": page.inputs,
            })  # fmt: skip
        elif what == "/files":
            names = [("artefacts/confusion.png", 20_480), ("checkpoints/<b>last</b>.pt", 4_200_000)]
            files = [
                {
                    "path": path,
                    "kind": "work",
                    "size": size,
                    "changed_at": time.time(),
                    "link": False,
                }
                for path, size in names
            ]
            self._json({"attempt": 1, "place": "ssh/gpu1", "files": files, "cut": False})
        elif query.get("follow"):
            self._begin_stream()
            with page.news:
                while not page.closing:
                    page.news.wait(1.0)
        else:
            start = int(query.get("from") or 0)
            start = max(0, len(page.log) + start) if start < 0 else start
            part = page.log[start : start + int(query.get("limit") or 1 << 20)]
            more = {"Bequeath-From": str(start), "Bequeath-Size": str(len(page.log))}
            self._send(200, part, "text/plain; charset=utf-8", more)

    def _begin_stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

    def _events(self, cursor: int) -> None:
        page = self.server_of_page
        if not page.streams:
            self._problem(502, "environment", "no stream passes here")
            return
        self._begin_stream()
        head = page.head
        try:
            self.wfile.write(b"retry: 2000\n\n")
            while not page.closing and not page.deleted:
                if page.cursor > cursor:
                    told = page.changed_after(cursor)
                    cursor = int(told["cursor"])
                    self._event("changes", told, str(cursor))
                    self._event("standing", page.search.standing(head=page.head))
                if head != page.head:
                    head = page.head
                    self._event("standing", page.search.standing(head=head))
                    self._event("back" if head else "gone", {} if head else {"since": time.time()})
                with page.news:
                    still = page.cursor <= cursor and page.head == head
                    if still and not page.closing and not page.deleted:
                        page.news.wait(5.0)
                self.wfile.write(b": here\n\n")
                self.wfile.flush()
            if page.deleted:
                error = {"kind": "no-experiment", "message": "the experiment was deleted"}
                error |= {"hint": "look at the list", "where": page.search.ident}
                self._event("gone", {"since": time.time(), "deleted": True, "error": error})
        except (BrokenPipeError, ConnectionResetError):
            return

    def _event(self, name: str, told: Any, ident: str = "") -> None:
        head = f"id: {ident}\n" if ident else ""
        data = msgspec.json.encode(told)
        self.wfile.write(f"{head}event: {name}\ndata: ".encode() + data + b"\n\n")
        self.wfile.flush()

    def _asset(self, path: Path) -> None:
        if not path.is_file() or STATIC not in path.resolve().parents:
            self._problem(404, "no-page", "the page has no such file")
            return
        kind = "text/javascript" if path.suffix == ".js" else mimetypes.guess_type(path.name)[0]
        packed = gzip.compress(path.read_bytes(), 6)
        more = {"Content-Encoding": "gzip", "Cache-Control": "no-cache"}
        self._send(
            200, packed, f"{kind}; charset=utf-8" if path.suffix != ".png" else "image/png", more
        )

    def _json(self, told: Any) -> None:
        encoded = msgspec.json.encode(told) if not _huge(told) else json.dumps(told).encode()
        self._send(200, gzip.compress(encoded, 1), "application/json", {"Content-Encoding": "gzip"})

    def _problem(self, status: int, kind: str, message: str, hint: str = "") -> None:
        told = {"error": {"kind": kind, "message": message, "hint": hint, "where": ""}}
        self._send(status, json.dumps(told).encode(), "application/json")

    def _send(
        self, status: int, body: bytes, kind: str, more: dict[str, str] | None = None
    ) -> None:
        try:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Content-Security-Policy", POLICY)
            self.send_header("X-Content-Type-Options", "nosniff")
            if more is None or "Cache-Control" not in more:
                self.send_header("Cache-Control", "no-store")
            for name, value in (more or {}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            return


def _huge(told: Any) -> bool:
    """Whether a whole number is in it that msgspec does not write."""
    if isinstance(told, dict):
        return any(map(_huge, told.values()))
    if isinstance(told, list):
        return any(map(_huge, told))
    return isinstance(told, int) and not isinstance(told, bool) and abs(told) >= 1 << 63
