"""The conversation with a driver that is a program of our own."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dispatcher.errors import PassingBackendError, PermanentBackendError
from dispatcher.platforms.ray.conversation import RayConversation, variables_for_driver
from tests.support.ports import free_port

#: Answers with what it was asked, and does as it is told.
PROGRAM = """
import json, os, signal, sys
lives = os.path.join(os.environ["LIVES"], str(os.getpid()))
for line in sys.stdin:
    question = json.loads(line)
    number, method = question.pop("id"), question.pop("ask")
    open(lives, "a").write(method + chr(10))
    if method == "connect" and question["address"] == os.environ.get("NO_RAY"):
        answer = {"error": "python has no Ray", "passing": False}
    elif method == "connect" and question["address"] == os.environ.get("NEVER"):
        signal.pause()
    elif method == "fail":
        answer = {"error": "away", "passing": True}
    elif method == "die":
        sys.exit(3)
    elif method == "hang":
        signal.pause()
    else:
        answer = {"answer": question}
    print(json.dumps({"id": number - 1, "answer": "late"}))
    print(json.dumps({"id": number, **answer}), flush=True)
"""


@pytest.fixture
def make(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., RayConversation]]:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    (tmp_path / "lives").mkdir()
    monkeypatch.setenv("LIVES", str(tmp_path / "lives"))
    made: list[RayConversation] = []

    def make(
        address: str = "auto",
        limit_s: float = 60.0,
        python: str = sys.executable,
        log: Path = tmp_path / "logs" / "driver.log",
    ) -> RayConversation:
        made.append(RayConversation(python, address, {"a": 1}, log, program, limit_s))
        return made[-1]

    yield make
    for one in made:
        one.close()


def lives(tmp_path: Path) -> dict[int, list[str]]:
    """What each driver was asked."""
    return {int(p.name): p.read_text().split() for p in (tmp_path / "lives").iterdir()}


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_one_driver_answers_question_by_question(
    make: Callable[..., RayConversation], tmp_path: Path
) -> None:
    """Mutation: the answer to a question before."""
    conversation = make()
    assert conversation.ask("look", prefix="a") == {"prefix": "a"}
    assert conversation.ask("look", prefix="b" * 300_000)["prefix"] == "b" * 300_000
    assert list(lives(tmp_path).values()) == [["connect", "look", "look"]]
    conversation.close()
    (pid,) = lives(tmp_path)
    assert not is_running(pid)


def test_an_error_is_raised_as_what_it_is(
    make: Callable[..., RayConversation], monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation = make()
    with pytest.raises(PassingBackendError, match="away"):
        conversation.ask("fail")
    assert conversation.ask("look") == {}
    monkeypatch.setenv("NO_RAY", "auto")
    with pytest.raises(PermanentBackendError, match="has no Ray") as raised:
        make().ask("look")
    assert "'python'" in raised.value.hint


def test_one_that_died_is_followed_by_another(
    make: Callable[..., RayConversation], tmp_path: Path
) -> None:
    conversation = make()
    with pytest.raises(PassingBackendError, match="ended with status 3"):
        conversation.ask("die")
    assert conversation.ask("look") == {}
    assert sorted(lives(tmp_path).values()) == [["connect", "die"], ["connect", "look"]]


def test_one_without_a_log_refers_to_none(
    make: Callable[..., RayConversation], tmp_path: Path
) -> None:
    """As where a cluster is only looked at. Mutation: people are sent to /dev/null."""
    with pytest.raises(PassingBackendError, match="status 3") as raised:
        make().ask("die")
    assert str(tmp_path) in raised.value.hint
    with pytest.raises(PassingBackendError, match="status 3") as raised:
        make(log=Path(os.devnull)).ask("die")
    assert raised.value.hint == "does 'python' name a Python with Ray?"


def test_one_that_hangs_is_ended_and_followed_by_another(
    make: Callable[..., RayConversation], tmp_path: Path
) -> None:
    """Mutation: two drivers."""
    conversation = make(limit_s=3.0)
    with pytest.raises(PassingBackendError, match="not answered within 3 s"):
        conversation.ask("hang")
    (hung,) = lives(tmp_path)
    assert not is_running(hung)


def test_where_nobody_listens_no_driver_is_started(
    make: Callable[..., RayConversation], tmp_path: Path
) -> None:
    """Ray itself would wait for minutes."""
    for scheme in ("", "ray://"):
        address = f"{scheme}127.0.0.1:{free_port()}"
        with pytest.raises(PassingBackendError, match=f"no Ray cluster answers at {address}"):
            make(address).ask("look")
    assert not lives(tmp_path)


def test_somebody_else_who_listens_there_is_no_cluster(
    make: Callable[..., RayConversation], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an SSH server: Ray waits for its first word, for minutes. Mutation: people hear that Ray
    is slow, and not which address is no Ray's."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        monkeypatch.setenv("NEVER", address)
        with pytest.raises(PassingBackendError) as raised:
            make(address, limit_s=3.0).ask("describe")
    assert raised.value.message == (
        f"no Ray cluster answers at {address}: nothing was heard within 3 s"
    )


def test_a_python_that_is_not_there_is_named(make: Callable[..., RayConversation]) -> None:
    with pytest.raises(PermanentBackendError, match="/nowhere/python cannot be run"):
        make(python="/nowhere/python").ask("look")


def test_what_shapes_our_python_is_not_the_drivers() -> None:
    """Mutation: our packages in a Python of another version."""
    variables = variables_for_driver({"PYTHONPATH": "/ours", "RAY_ADDRESS": "a:1", "HOME": "/h"})
    assert variables == {"RAY_ADDRESS": "a:1", "HOME": "/h", "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}
