"""From the navigation to what one came for, beside Optuna's dashboard; what the page weighs."""

from __future__ import annotations

import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.environments import EnvironmentFailed, python_of
from benchmarks.rows import Row, median, row
from benchmarks.web.looked_at import FIRST_CHART, OVERVIEW, PLOTLY, browser, seen_ms
from benchmarks.web.stores import EXPERIMENT, made, peers_study
from dispatcher.web.settings import STATIC
from tests.support.page_files import PAGES, visited
from tests.support.ports import free_port
from tests.support.web_server import WebServer

#: Times that each is looked at; the middle one counts.
ROUNDS = 5
PEERS_ROUNDS = 3

FIRST_MS, OVERVIEW_MS, MANY_MS, SHARE = 1_000.0, 2_000.0, 4_000.0, 8
PAGE_BYTES, DATA_BYTES = 120_000, 400_000

_READ = {"first": FIRST_CHART, "overview": OVERVIEW}
_PEER_READY_S = 120.0

#: The first look at the peer's page, at which its server reads a million values; and each other.
#: One whose chart is not there by then counts as so long: the peer gets the benefit of it.
_FIRST_LOOK_S, _LOOK_S = 300.0, 170.0


@contextmanager
def served(home: Path) -> Iterator[WebServer]:
    """``bequeath web`` over a folder of experiments."""
    with tempfile.TemporaryDirectory(prefix="bq-web-") as state:
        server = WebServer(home, Path(state))
        try:
            yield server
        finally:
            server.end()


def link_of(server: WebServer) -> str:
    """A link that signs a browser in."""
    return server.command("web", "--link")


def ours_ms(trials: int, metrics: int, rounds: int) -> tuple[list[dict[str, float]], float]:
    """What a fresh browser sees of our page, in milliseconds, each time; and the server's first
    answer after it was started, which the others are not."""
    found = []
    with served(made(trials, metrics)) as server:
        began = time.perf_counter()
        server.get(f"/experiments/{EXPERIMENT}/table")
        first = (time.perf_counter() - began) * 1e3
        for _ in range(rounds):
            with browser() as one:
                one.driver.get(link_of(server))
                one.driver.get("about:blank")  # the watch is for the page that is asked for
                url = f"http://127.0.0.1:{server.port}/e/{EXPERIMENT}"
                found.append(seen_ms(one, url, _READ))
    return found, first


@contextmanager
def dashboard(storage: Path) -> Iterator[str]:
    """Optuna's dashboard over a storage; gives the address of its study's page."""
    port = free_port()
    program = python_of("optuna_dashboard").with_name("optuna-dashboard")
    command = [program, f"sqlite:///{storage}", "--host", "127.0.0.1", "--port", str(port)]
    with tempfile.TemporaryDirectory(prefix="bq-web-") as folder:
        process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            _wait(f"http://127.0.0.1:{port}/api/studies")
            yield f"http://127.0.0.1:{port}/dashboard/studies/1"
        finally:
            process.terminate()
            process.wait(30)


def _wait(url: str) -> None:
    deadline = time.monotonic() + _PEER_READY_S
    while True:
        try:
            with urllib.request.urlopen(url, timeout=_PEER_READY_S) as answer:
                answer.read()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


class Look(NamedTuple):
    """One look at the peer's page: how long it was until its first chart, or until nobody waited
    for that any more."""

    ms: float
    drawn: bool

    def __str__(self) -> str:
        return _s(self.ms) if self.drawn else f"nothing after {_s(self.ms)}"


def peers_looks(trials: int, metrics: int, rounds: int) -> tuple[list[Look], str]:
    """What a fresh browser sees of the peer's page, each time, once its server has had time to
    read the study; and what it is. The last look is one at which nothing was drawn, if any is."""
    storage, versions = peers_study(trials, metrics)
    with dashboard(storage) as url:
        first = _look(url, _FIRST_LOOK_S)  # at which its server reads the study
        looks = [_look(url, _LOOK_S)]
        while len(looks) < rounds and looks[-1].drawn:
            looks.append(_look(url, _LOOK_S))
    peer = ", ".join(f"{name} {version}" for name, version in versions.items())
    return looks, f"{peer}; the first look, at which its server read the study: {first}"


def _look(url: str, limit_s: float) -> Look:
    from selenium.common.exceptions import TimeoutException as ScriptStands
    from urllib3.exceptions import TimeoutError as BrowserStands  # its page keeps it busy

    began = time.monotonic()
    with browser() as one:
        one.driver.set_script_timeout(limit_s)
        one.driver.command_executor.client_config.timeout = int(limit_s)
        try:
            return Look(seen_ms(one, url, {"first": PLOTLY}, limit_s=limit_s)["first"], drawn=True)
        except (AssertionError, BrowserStands, ScriptStands):
            return Look(1e3 * (time.monotonic() - began), drawn=False)


def _s(ms: float) -> str:
    return f"{ms / 1e3:.2f} s"


def rows(*, quick: bool = False) -> list[Row]:
    """First chart and overview of 10,000 trials, beside the peer."""
    trials, metrics = (400, 20) if quick else (10_000, 100)
    times, first = ours_ms(trials, metrics, 1 if quick else ROUNDS)
    chart, whole = (median([each[name] for each in times]) for name in ("first", "overview"))
    seen = ", ".join(_s(each["first"]) for each in times)
    what = f"navigation → first chart, {trials:,} trials × {metrics}, nothing cached"
    told = f"fresh browsers: {seen}; the server's first reading of the store {_s(first)}"
    peer = f"≤ 1/{SHARE} of Optuna dashboard's"
    try:
        theirs, detail = peers_looks(trials, metrics, 1 if quick else PEERS_ROUNDS)
    except (EnvironmentFailed, OSError, subprocess.SubprocessError) as error:
        against = row(f"… {peer}", peer, "not measured", None, f"peer not measured: {error}"[:300])
    else:
        middle = median([each.ms for each in theirs])
        bound = "" if theirs[-1].drawn else "less than "
        against = row(
            "… against Optuna's dashboard, the same trials in its SQLite storage",
            peer,
            f"{bound}1/{middle / chart:.1f} ({_s(chart)} against {_s(middle)})",
            None if quick else chart * SHARE <= middle,
            f"{detail}; then {', '.join(map(str, theirs))}",
        )
    return [
        row(what, f"≤ {_s(FIRST_MS)}", _s(chart), chart <= FIRST_MS, told),
        against,
        row("… → overview complete", f"≤ {_s(OVERVIEW_MS)}", _s(whole), whole <= OVERVIEW_MS),
    ]


def rows_of_many(*, quick: bool = False) -> list[Row]:
    """The overview of 50,000 trials."""
    trials = 800 if quick else 50_000
    times, first = ours_ms(trials, 10, 1 if quick else ROUNDS)
    chart, whole = (median([each[name] for each in times]) for name in ("first", "overview"))
    return [
        row(
            f"navigation → overview complete, {trials:,} trials",
            f"≤ {_s(MANY_MS)}",
            _s(whole),
            whole <= MANY_MS,
            f"first chart after {_s(chart)}; the server's first reading of the store {_s(first)}",
        )
    ]


def rows_of_weight(*, quick: bool = False) -> list[Row]:
    """What a visit to the page loads, as the server sends it: pages come when one goes there."""
    trials, metrics = (400, 20) if quick else (10_000, 100)
    with served(made(trials, metrics)) as server:
        bearer = {"Authorization": f"Bearer {server.token}"}
        document = len(server.raw("GET", "/", bearer).body)
        kinds = (".js", ".css", ".svg")
        files = [path for path in STATIC.rglob("*") if path.suffix in kinds]
        sent = {path: _sent(server, f"/assets/{path.relative_to(STATIC)}") for path in files}
        data = _sent(server, f"/api/v1/experiments/{EXPERIMENT}/table")
    visits = {
        name: document + sum(sent.get(path, 0) for path in visited(page))
        for name, page in PAGES.items()
    }
    heaviest = max(visits, key=lambda name: visits[name])
    return [
        row(
            "the page without data, compressed: the most that a visit loads",
            f"≤ {PAGE_BYTES // 1000} kB",
            f"{visits[heaviest] / 1e3:.0f} kB",
            visits[heaviest] <= PAGE_BYTES,
            f"{heaviest}; the overview {visits['overview'] / 1e3:.0f} kB; all pages together, "
            f"{len(sent) + 1} files, {(document + sum(sent.values())) / 1e3:.0f} kB",
        ),
        row(
            f"… data of {trials:,} trials of nine parameters",
            f"≤ {DATA_BYTES // 1000} kB",
            f"{data / 1e3:.0f} kB",
            data <= DATA_BYTES,
        ),
    ]


def _sent(server: WebServer, path: str) -> int:
    head = {"Authorization": f"Bearer {server.token}", "Accept-Encoding": "gzip"}
    answer = server.raw("GET", path, head)
    assert answer.status == 200, f"{path}: {answer.status}"
    return len(answer.body)
