"""A real MLflow server on loopback: what is sent twice is there once."""

from __future__ import annotations

import http.server
import json
import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dispatcher.errors import DispatcherError, PassingBackendError, PermanentBackendError
from dispatcher.sinks.conformance import HeldRun, try_sink
from dispatcher.sinks.cursor import CursorFile
from dispatcher.sinks.feeding import Feeding
from dispatcher.sinks.mlflow.kind import MlflowConfig, MlflowKind
from tests.support.fed import FedLife, journal_of, new_folder
from tests.support.trackers import MlflowServer, free_port, mlflow_server

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlflowServer]:
    with mlflow_server(tmp_path_factory.mktemp("trackers") / "mlflow") as one:
        yield one


def feed(folder: Path, section: MlflowConfig, status: str = "") -> None:
    with Feeding(folder, section) as feeding:
        while feeding.step():
            pass
        feeding.finish(status)


def tags_of(run: dict[str, dict[str, list[dict[str, str]]]]) -> dict[str, str]:
    return {tag["key"]: tag["value"] for tag in run["data"]["tags"]}


def test_a_search_is_there_once_however_often_it_was_sent(
    server: MlflowServer, tmp_path: Path
) -> None:
    """Mutation: points without a time of their own, or runs that are not looked for."""
    folder = new_folder(tmp_path)
    section = MlflowConfig(kind="mlflow", uri=server.uri, experiment="often")
    dice = random.Random(1)
    with journal_of(folder) as journal:
        life = FedLife(journal)
        for _ in life.some(range(1, 11), 20):
            if dice.random() < 0.2:
                with Feeding(folder, section) as feeding, pytest.MonkeyPatch.context() as patch:
                    if dice.random() < 0.5:  # sent, and the cursor is lost
                        patch.setattr(CursorFile, "write", lambda file, cursor: None)
                    feeding.step()
    feed(folder, section, "completed")
    for path in (folder / "sinks").glob("*.cursor.json"):
        path.unlink()
    feed(folder, section, "completed")
    *trials, parent = sorted(
        server.runs("often"), key=lambda r: "trial-" not in r["info"]["run_name"]
    )
    assert parent["info"]["status"] == "FINISHED"
    assert [run["info"]["run_name"] for run in trials] == [f"trial-{n:05d}" for n in range(1, 11)]
    for number, run in enumerate(trials, 1):
        tags = tags_of(run)
        assert tags["mlflow.parentRunId"] == parent["info"]["run_id"]
        assert tags.get("bequeath.parent") == (str(number - 3) if number > 3 else None)
        assert tags["bequeath.outcome"] == "succeeded"
        retried = number % 5 == 0
        assert tags["bequeath.attempt"] == ("2" if retried else "1")
        history = server.history(run["info"]["run_id"], "default")
        assert [each["step"] for each in history] == list(range(1, 4 if retried else 21))
        assert run["info"]["status"] == "FINISHED"
        params = {one["key"]: one["value"] for one in run["data"]["params"]}
        assert params == {
            "lr": str(1 / (number + 1)),
            "act": ("relu", "tanh")[number % 2],
            "width": "16.0",
            "late/depth": str(float(number % 5)),
        }
    values = {run["info"]["run_name"]: run["data"]["metrics"] for run in trials}
    finals = {m["key"]: m["value"] for m in values["trial-00003"]}
    assert finals["final"] == 0.25


def test_names_and_numbers_of_any_kind_are_taken(server: MlflowServer, tmp_path: Path) -> None:
    folder = new_folder(tmp_path)
    hostile = {
        "blocks[0].op": "conv", "blocks.0.op": "other", "../../etc/passwd": 1, "a\x00b\x1b[2J": 2,
        "x" * 10_000: 3, "<img src=x onerror=alert(1)>": "<script>", "/abs": 1e308, "nan": None,
        "text": "y" * 20_000, "huge": 10**30, "list": list(range(5_000)), "": {"": {"": 1}},
        **{f"p{n}": n for n in range(300)},
    }  # fmt: skip
    with journal_of(folder) as journal:
        life = FedLife(journal)
        life.propose(1, None, json.dumps(hostile))
        life.start(1)
        names = {name: 0.5 for name in hostile if name != "nan"}
        life.metrics(1, [1], value={"default": 1, "huge": 10**30, **names})
        life.metrics(1, [2], value={"default": -1, "../..": 3})
        life.finish(1, 3, 1, '"nothing"')
    feed(folder, MlflowConfig(kind="mlflow", uri=server.uri, experiment="any <b>'\"; --"))
    found = server.runs("any <b>'\"; --")
    (trial,) = (run for run in found if run["info"]["run_name"] == "trial-00001")
    params = {one["key"]: one["value"] for one in trial["data"]["params"]}
    assert (params["blocks.0.op"], params["blocks.0.op-2"]) == ("conv", "other")
    assert params["_/_/etc/passwd"] == "1.0"
    assert len(params) == 64 + 36
    assert len(server.history(trial["info"]["run_id"], "default")) == 2


def test_the_sink_conforms(server: MlflowServer, tmp_path: Path) -> None:
    section = MlflowConfig(kind="mlflow", uri=server.uri, experiment="conformance")

    def held() -> dict[int, HeldRun]:
        found = {}
        for run in server.runs("conformance"):
            tags = tags_of(run)
            if "bequeath.trial" in tags:
                history = server.history(run["info"]["run_id"], "default")
                parent = tags.get("bequeath.parent")
                found[int(tags["bequeath.trial"])] = HeldRun(
                    [int(each["step"]) for each in history],
                    run["info"]["status"] == "FINISHED",
                    None if parent is None else int(parent),
                )
        return found

    try_sink(MlflowKind(), section, tmp_path, held)


def test_a_server_that_is_away_is_an_error_that_passes(
    server: MlflowServer, tmp_path: Path
) -> None:
    """Mutation: facts that count as taken when nobody has them."""
    folder = new_folder(tmp_path)
    with journal_of(folder) as journal:
        life = FedLife(journal)
        steps = life.some(range(1, 7), 10)
        for _ in range(12):
            next(steps)
        section = MlflowConfig(kind="mlflow", uri=server.uri, experiment="away")
        with Feeding(folder, section) as feeding:
            feeding.step()
            for _ in steps:
                pass
            server.stop()
            with pytest.raises(PassingBackendError, match="does not answer"):
                feeding.step()
    with pytest.raises(DispatcherError), Feeding(folder, section) as feeding:
        feeding.step()
    server.start()
    feed(folder, section)
    runs = [run for run in server.runs("away") if "trial-" in run["info"]["run_name"]]
    points = [len(server.history(run["info"]["run_id"], "default")) for run in runs]
    assert points == [10, 10, 10, 10, 3, 10]


def test_what_is_no_mlflow_server_is_named(tmp_path: Path) -> None:
    class Stranger(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(302 if "get-by-name" in self.path else 200)
            self.send_header("Location", "http://127.0.0.1:1/steal")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    folder = new_folder(tmp_path)
    with journal_of(folder) as journal:
        life = FedLife(journal)
        for _ in life.some([1], 1):
            pass
    stranger = http.server.HTTPServer(("127.0.0.1", free_port()), Stranger)
    threading.Thread(target=stranger.serve_forever, daemon=True).start()
    try:
        section = MlflowConfig(kind="mlflow", uri=f"http://127.0.0.1:{stranger.server_port}")
        with (
            pytest.raises(PermanentBackendError, match="answers 302"),
            Feeding(folder, section) as f,
        ):
            f.step()
    finally:
        stranger.shutdown()
        stranger.server_close()
