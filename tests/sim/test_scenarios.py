"""Scenario files: like the minutes of a meeting, what happened above the line, what the core
answered below. A first line ``settings: name=value …`` sets the stage.

Words: ``propose 1 from 0``, ``wait 2 for 0 1``, ``not now 1``, ``run 0``, ``start 0.1``,
``final 0.1 0.5``, ``exit 0.1 failed``, ``took result 0``, ``took end 0``, ``kill 1``,
``host lost``, ``host ready``, ``head 2``, ``worker joined [0.1 …]``, ``worker lost``,
``worker silent``, ``worker heard``, ``disk low /w``, ``disk has room /w``, ``tick``.
Several on a line: ``;``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.core.model import EndReason
from tests.support.scene import HOST, Scene

FILES = sorted((Path(__file__).parent / "scenarios").glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_scenario(path: Path, request: pytest.FixtureRequest) -> None:
    written = path.read_text()
    played = play(written)
    if request.config.getoption("--rewrite-scenarios", default=False):
        path.write_text(played)
    else:
        assert played == written


def play(text: str) -> str:
    """The file with its answers as the core gives them."""
    first, *blocks = text.strip().split("\n\n")
    settings = {}
    for pair in first.removeprefix("settings:").split():
        name, _, value = pair.partition("=")
        settings[name] = int(value) if value.isdigit() else value
    scene = Scene(**settings)
    out = [first]
    for block in blocks:
        above = block.partition("\n----")[0]
        actions: list[a.Action] = []
        for line in above.split("\n"):
            for word in line.split(";"):
                actions.extend(_say(scene, word.split()))
        lines = [_told(x) for x in actions] or ["nothing"]
        out.append("\n".join([above, "----", *lines, _state(scene)]))
    return "\n\n".join(out) + "\n"


def _say(scene: Scene, words: list[str]) -> list[a.Action]:
    match words:
        case ["propose", child, "from", parent]:
            return scene.propose(int(child), int(parent))
        case ["propose", trial]:
            return scene.propose(int(trial))
        case ["wait", trial, "for", *parents]:
            return scene.wait(int(trial), *map(int, parents))
        case ["not", "now", trial]:
            return scene.not_now(int(trial))
        case ["run", trial]:
            return scene.run(int(trial))
        case ["start", attempt]:
            return scene.started(*_attempt(attempt))
        case ["final", attempt, value]:
            trial, number = _attempt(attempt)
            return scene.final(trial, value, number)
        case ["exit", attempt, *reason]:
            trial, number = _attempt(attempt)
            return scene.exit(trial, EndReason(" ".join(reason)), number)
        case ["took", "result", trial]:
            return scene.result(int(trial))
        case ["took", "end", trial]:
            return scene.end(int(trial))
        case ["kill", trial]:
            return scene.say(e.TrialStopRequested(TrialId(int(trial)), EndReason.KILLED))
        case ["host", "lost"]:
            return scene.say(e.TunerHostLost("gone"))
        case ["host", "ready"]:
            return scene.say(e.TunerHostReady())
        case ["head", epoch]:
            return scene.say(e.HeadStarted(int(epoch)))
        case ["worker", "joined", *holds]:
            pairs = tuple((TrialId(t), n) for t, n in map(_attempt, holds))
            return scene.say(e.WorkerJoined(HOST, scene.settings.slots, pairs))
        case ["worker", "silent"]:
            return scene.say(e.WorkerSuspect(HOST, 30.0))
        case ["worker", "heard"]:
            return scene.say(e.WorkerHeard(HOST))
        case ["worker", "lost"]:
            return scene.say(e.WorkerLost(HOST, "gone"))
        case ["disk", "low", place]:
            return scene.say(e.DiskLow(place, 90 << 20, 500 << 20))
        case ["disk", "has", "room", place]:
            return scene.say(e.DiskRecovered(place, 700 << 20))
        case ["tick"]:
            return scene.tick()
        case _:
            raise ValueError(f"no such word: {' '.join(words)}")


def _attempt(text: str) -> tuple[int, int]:
    trial, _, number = text.partition(".")
    return int(trial), int(number)


def _told(action: a.Action) -> str:
    match action:
        case a.StartAttempt(trial=t, attempt=n, restore_digest=digest):
            return f"start {t}.{n}" + (f" with the weights {digest}" if digest else "")
        case a.StopAttempt(trial=t, attempt=n, reason=reason):
            return f"stop {t}.{n}: {reason.value}"
        case a.Deliver(trial=t, value=value, success=success, verdict=verdict):
            word = "open" if verdict.ok else f"fails: {verdict.reason}"
            told = "no result" if value is None else f"result {value}"
            told += " (taken before)" if action.result_delivered else ""
            chain = f" {list(verdict.chain)}" if verdict.chain else ""
            return f"deliver {t}: {told}, success {success}, gate {word}{chain}"
        case a.OpenGate(trial=t, verdict=verdict):
            return f"gate {t} fails: {verdict.reason}"
        case a.OpenRequest(trial=t):
            return f"ask for {t}"
        case a.CancelRequest(trial=t):
            return f"cancel {t}"
        case a.TrialIsOver(trial=t):
            return f"{t} is over"
        case a.ReportWorker(text=text) | a.ReportDisk(text=text):
            return f"say: {text}"
        case a.Finish(phase=phase, reason=reason):
            return f"finish: {phase.value}, {reason}"
        case _:
            return type(action).__name__


def _state(scene: Scene) -> str:
    parts = []
    for name in ("open", "blocked", "parked", "held", "queued", "running", "backoff", "delivering"):
        ids = list(getattr(scene.state, name))
        if ids:
            parts.append(f"{name} {' '.join(map(str, ids))}")
    return f"({'; '.join(parts)})"
