"""A run as one file: what goes in, within which bounds, and what never does."""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from dispatcher.errors import InternalError, UserError
from dispatcher.experiment import build_experiment
from dispatcher.experiment.snapshot import to_json
from dispatcher.experiments.handle import ExperimentHandle
from dispatcher.web.saved.contents import MOST_JSON, MOST_TEXT, StoredRun
from dispatcher.web.saved.linking import ModuleLinker
from dispatcher.web.saved.saving import save_run
from dispatcher.web.settings import STATIC
from dispatcher.web.table import MOST_TEXT as CELL
from tests.support.made_run import MadeRun
from tests.support.made_search import MadeSearch
from tests.unit.cli.conftest import Shell
from tests.unit.queries.evolution import evolve, make_folder

SECRET = "hunter2-is-the-password"
BLOCK = re.compile(r'<script type="application/octet-stream" id="part-([a-z]+(?:-\d+)?)">([^<]*)<')


def blocks(document: bytes) -> dict[str, Any]:
    """The data of a file, unpacked."""
    return {
        name: json.loads(gzip.decompress(base64.b64decode(packed)))
        for name, packed in BLOCK.findall(document.decode())
    }


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An evolution of forty trials with a whole file, which names a secret."""
    monkeypatch.setenv("BEQUEATH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("THE_TOKEN", SECRET)
    made = make_folder(tmp_path / "home")
    evolve(made, 40)
    values = {
        "tuner": {"name": "random"}, "trialCommand": "true", "trialConcurrency": 2,
        "searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}},
        "trialEnvironment": {"API_TOKEN": "env:THE_TOKEN"},
    }  # fmt: skip
    (made / "experiment.json").write_text(to_json(build_experiment(values, base_folder=made)))
    return made


def test_a_file_has_what_the_server_would_answer(folder: Path) -> None:
    handle = ExperimentHandle(folder)
    saved = save_run(StoredRun(handle), STATIC)
    parts = blocks(saved.document)
    run = parts["run"]
    base = run["base"]
    assert run["answers"][base]["experiment"]["id"] == handle.id
    assert run["answers"][f"{base}/table"]["count"] == 42
    assert len(run["answers"][f"{base}/history"]["trials"]) == 42
    details = {key: one for name, part in parts.items() if name.startswith("trials-")
               for key, one in part.items()}  # fmt: skip
    assert len(details) == saved.detailed == saved.trials == 42
    with handle.reading() as reader:
        from dispatcher import queries

        for number in (0, 7, 11, 39):
            whole = queries.trial(reader, number)
            one = details[str(number)]
            assert one["trial"] == json.loads(json.dumps(whole.trial.to_json()))
            assert one["children"] == [*whole.children]
            assert [each["number"] for each in one["attempts"]] == [
                a.number for a in whole.attempts
            ]
            points = [p.number for p in whole.metrics if p.counted and not p.final]
            assert (one["curve"] or {"values": []})["values"] == points


def test_no_secret_path_or_process_of_the_machine_is_in_it(folder: Path) -> None:
    """Mutation: an answer that passes by the mask, the folder of the experiment."""
    import sqlite3

    store = sqlite3.connect(folder / "journal.sqlite")
    text = f"Traceback: login {SECRET} refused"
    store.execute("UPDATE trials SET error = ?, parameters = ? WHERE id = 3",
                  (text, json.dumps({SECRET: [SECRET]})))  # fmt: skip
    store.execute("UPDATE attempts SET text = ? WHERE trial = 3", (text,))
    store.commit()
    store.close()
    saved = save_run(StoredRun(ExperimentHandle(folder)), STATIC, logs=True)
    parts = blocks(saved.document)
    told = json.dumps(parts)
    assert "refused" in told
    assert "[masked]" in told
    assert SECRET not in told
    assert SECRET.encode() not in saved.document
    assert str(folder) not in told
    assert set(parts["run"]["answers"]["/session"]) == {
        "version", "scope", "token", "user", "logs", "saved_at", "left_out",
    }  # fmt: skip
    assert parts["run"]["answers"]["/session"]["token"] == ""


@pytest.mark.parametrize("seen", [1, 4, len(SECRET) - 1])
def test_no_part_of_a_secret_is_left_where_a_text_is_cut(folder: Path, seen: int) -> None:
    """Mutation: a text that is cut first and masked then."""
    import sqlite3

    def straddling(most: int) -> str:
        return "x" * (most - seen) + SECRET + "y" * 100

    store = sqlite3.connect(folder / "journal.sqlite")
    store.execute(
        "UPDATE trials SET error = ?, parameters = ? WHERE id = 3",
        (straddling(MOST_TEXT), json.dumps({"p": straddling(CELL - 1), "q": [straddling(CELL)]})),
    )
    store.commit()
    store.close()
    log = folder / "trials" / "3" / "1" / "stdout"
    log.parent.mkdir(parents=True)
    log.write_text("x" * 1_000 + SECRET + "y" * (100 + seen))
    run = StoredRun(ExperimentHandle(folder))
    found = run.log(3, "stdout", 100 + len(SECRET))
    assert found is not None
    assert found["text"].endswith("y" * 100)
    texts = json.dumps([run.answers(), run.details([3], 3), found])
    assert f"x{SECRET[0]}" not in texts
    assert f"{SECRET[-1]}y" not in texts


@pytest.mark.parametrize("seen", [0, 1, 4, len(SECRET) - 1])
def test_a_secret_that_two_files_of_a_log_have_is_masked(folder: Path, seen: int) -> None:
    """Mutation: only the newest file, which begins with the end of a secret."""
    logs = folder / "trials" / "3" / "1"
    logs.mkdir(parents=True)
    (logs / "stdout.1").write_text("x" * 1_000 + SECRET[:seen])
    (logs / "stdout").write_text(SECRET[seen:] + "y" * 100)
    found = StoredRun(ExperimentHandle(folder)).log(3, "stdout", 400)
    assert found is not None
    assert found["text"].endswith("x[masked]" + "y" * 100)
    assert found["size"] == 1_100 + len(SECRET)


def test_secrets_that_are_not_known_here_are_named(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "run.html"
    assert "THE_TOKEN" not in Shell()("web", "--export", folder.name, "-o", str(target)).err
    monkeypatch.delenv("THE_TOKEN")
    done = Shell()("web", "--export", folder.name, "-o", str(target))
    assert done.code == 0
    assert "env:THE_TOKEN is not known here" in done.err
    assert b"THE_TOKEN" not in target.read_bytes()
    told = json.loads(Shell()("web", "--export", folder.name, "-o", str(target), "--json").out)
    assert told["unmasked"] == ["env:THE_TOKEN"]


def test_what_is_no_file_is_not_replaced(folder: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to(pipe)
    for target in (pipe, tmp_path / "link", tmp_path):
        done = Shell()("web", "--export", folder.name, "-o", str(target))
        assert done.code == 3
        assert "is no file" in done.err
    assert pipe.is_fifo()


def test_a_name_with_markup_is_text(folder: Path) -> None:
    run = MadeRun(MadeSearch(3, hostile=True))
    run.name = '</title><script>alert(1)</script>"'
    document = save_run(run, STATIC).document.decode()
    assert "<script>alert" not in document
    assert document.count("</script>") == document.count("<script")


def test_a_text_that_is_too_long_is_left_out_by_itself(folder: Path) -> None:
    import sqlite3

    store = sqlite3.connect(folder / "journal.sqlite")
    store.execute("UPDATE trials SET parameters = ?, error = ? WHERE id = 3",
                  (json.dumps({"x": "y" * MOST_JSON}), "z" * 100_000))  # fmt: skip
    store.commit()
    store.close()
    run = StoredRun(ExperimentHandle(folder))
    one = run.details([3], 10)["3"]["trial"]
    assert "left out" in one["parameters"]
    assert len(one["error"]) < 30_000


@pytest.mark.parametrize("room_kib", [60, 80, 100, 230, 600])
def test_a_file_is_as_small_as_was_asked_and_says_what_it_leaves_out(room_kib: int) -> None:
    """Mutation: a budget that counts bytes before they are packed, a part that is not counted."""
    search = MadeSearch(600)
    most = len(save_run(MadeRun(MadeSearch(0)), STATIC).document) + (room_kib << 10)
    saved = save_run(MadeRun(search, log="line\n" * 500), STATIC, most_bytes=most, logs=True)
    assert len(saved.document) <= most
    parts = blocks(saved.document)
    assert parts["run"]["left_out"] == saved.left_out
    has = {key for name, part in parts.items() if name.startswith("trials-") for key in part}
    assert len(has) == saved.detailed
    said = " ".join(saved.left_out)
    if saved.detailed < 600:
        assert f"Details of {600 - saved.detailed:,} of 600 trials" in said
    best = search.best()
    assert best is not None
    assert not has or str(best.trial) in has
    assert ("curves" in said.lower()) is (room_kib < 600)


def test_more_than_fits_at_all_is_refused_with_what_it_takes() -> None:
    with pytest.raises(UserError, match="600 trials take") as refused:
        save_run(MadeRun(MadeSearch(600)), STATIC, most_bytes=150_000)
    assert "--most" in refused.value.hint


def test_an_experiment_without_trials_is_saved_as_well(tmp_path: Path) -> None:
    saved = save_run(MadeRun(MadeSearch(0)), STATIC)
    assert (saved.trials, saved.detailed) == (0, 0)
    assert "trials" not in blocks(saved.document)["run"]["parts"]


def test_the_policy_allows_our_script_and_nothing_else() -> None:
    document = save_run(MadeRun(MadeSearch(2)), STATIC).document.decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', document)
    assert policy is not None
    rules = dict(one.strip().split(" ", 1) for one in policy[1].split(";"))
    assert rules["default-src"] == "'none'"
    assert re.fullmatch(r"'sha256-[A-Za-z0-9+/]{43}='", rules["script-src"])
    assert re.fullmatch(r"'sha256-[A-Za-z0-9+/]{43}='", rules["style-src"])
    assert set(rules) == {
        "default-src", "script-src", "style-src", "img-src", "base-uri", "form-action",
    }  # fmt: skip
    assert not re.search(r'(?:src|href)="(?!data:)', document.partition("<style>")[0])


@pytest.mark.parametrize(
    "text",
    [
        'import * as all from "./other.js";\n',
        'import "./other.js";\n',
        'export * from "./other.js";\n',
        "export default { a: 1 };\n",
        "import('./other.js');\n",
        "const a = '</script>';\n",
    ],
)
def test_a_module_that_cannot_be_linked_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "other.js").write_text("export const a = 1;\n")
    (tmp_path / "main.js").write_text(text)
    with pytest.raises(InternalError):
        ModuleLinker(tmp_path).link("main.js")


def test_modules_in_a_ring_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text('import { b } from "./b.js";\nexport const a = 1;\n')
    (tmp_path / "b.js").write_text('import { a } from "./a.js";\nexport const b = 1;\n')
    with pytest.raises(InternalError, match=r"a\.js → b\.js → a\.js"):
        ModuleLinker(tmp_path).link("a.js")


def test_every_module_of_the_page_is_linked() -> None:
    script = ModuleLinker(STATIC).link("page/main.js")
    for path in [*STATIC.glob("page/*.js"), *STATIC.glob("pages/*.js")]:
        if path.name not in ("main.js", "early.js"):  # asks ahead of a server
            first = next(line for line in path.read_text().splitlines() if line != "/**")
            assert script.count(first) == 1, path.name


def test_the_command_writes_the_file_and_says_what_it_left_out(
    folder: Path, tmp_path: Path
) -> None:
    target = tmp_path / "out" / "run.html"
    done = Shell()("web", "--export", folder.name, "-o", str(target))
    assert done.code != 0
    assert "cannot be written" in done.err
    target.parent.mkdir()
    done = Shell()("web", "--export", folder.name, "-o", str(target))
    assert (done.code, done.out.strip()) == (0, str(target)), done.err
    assert "--with-logs" in done.err
    assert target.read_bytes().startswith(b"<!doctype html>")
    told = json.loads(Shell()("web", "--export", folder.name, "-o", str(target), "--json").out)
    assert (told["trials"], told["detailed"]) == (42, 42)
    assert told["bytes"] == target.stat().st_size
    both = Shell()("web", "--export", folder.name, "--token")
    assert both.code == 2
    assert "one of --export" in both.err
    missing = Shell()("web", "--export", "no-such-run")
    assert missing.code != 0
    assert "no-such-run" in missing.err
