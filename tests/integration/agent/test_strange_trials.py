"""Trials that put odd things where their agent reads: it goes on, and so do all others."""

from __future__ import annotations

import sys

import pytest

from tests.support.workers import LOCAL
from trial_runtime import facts
from trial_runtime.facts import EndReason

ODD = {
    "a pipe": "os.mkfifo('.nni/metrics')",
    "a link to a pipe": "os.mkfifo('pipe'); os.symlink('../pipe', '.nni/metrics')",
    "a pipe for the folder": "os.rmdir('.nni'); os.mkfifo('.nni')",
    "a device": "os.symlink('/dev/zero', '.nni/metrics')",
    "a deep record": "open('.nni/metrics', 'w').write('ME%06d' % 200000 + '[' * 200000)",
    "a deep value": "open('.nni/metrics', 'w').write(deep())",
    "a pipe for what it prints": "os.mkfifo('stdout'); print('x', flush=True)",
    "rubbish": "open('.nni/metrics', 'w').write('ME12x' + 'M' * 5000000)",
}

SCRIPT = """
import json, os
from tests.support import hold
odd = json.load(open(os.environ["BEQUEATH_SESSION"]))["parameters"]
odd = json.loads(odd).get("odd")
os.chdir(os.environ["NNI_SYS_DIR"])
os.makedirs(".nni", exist_ok=True)

def record(kind, value):
    body = json.dumps({"type": kind, "value": value}) + chr(10)
    return "ME%06d%s" % (len(body), body)

def deep():
    return record("FINAL", "[" * 200000) + record("PERIODICAL", "[" * 500 + "]" * 500)

if odd:
    exec(odd)
    hold.for_ever()
else:
    hold.pace(1.5)  # the agent has looked at what the others have made
    open(".nni/metrics", "w").write(record("FINAL", "0.5"))
"""


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD.keys())
def test_an_agent_goes_on_whatever_lies_where_it_reads_and_writes(head_with, odd: str) -> None:
    """Mutation: it waits for ever at a pipe, or ends by a deep record; all trials are lost."""
    head = head_with(command=f"{sys.executable} train.py", nni=True)
    head.script(SCRIPT)
    head.until(lambda: head.life, "hello")
    head.start(1, parameters={"odd": odd})
    head.until(lambda: head.of(facts.AttemptStarted, 1), "start")
    assert head.run(2).reason == EndReason.FINISHED
    assert [word.value for word in head.of(facts.FinalReported, 2)] == ["0.5"]
    head.send(facts.StopAttempt(LOCAL, 1, 1, EndReason.KILLED, 0.0))
    assert head.end_of(1).reason == "killed by the user"
    assert not head.of(facts.FinalReported, 1)


def test_a_final_result_far_behind_what_is_read_counts_and_the_end_says_so(head_with) -> None:
    """Mutation: what is left out is said in the agent's log only."""
    head = head_with(command=f"{sys.executable} train.py", nni=True)
    head.script(
        "import json, os\n"
        "os.chdir(os.environ['NNI_SYS_DIR'])\n"
        "body = json.dumps({'type': 'FINAL', 'value': '0.5'}) + chr(10)\n"
        "with open('.nni/metrics', 'wb') as file:\n"
        "    file.seek(1 << 32)\n"  # a hole, which takes no room
        "    file.write(b'ME%06d%s' % (len(body), body.encode()))\n"
    )
    end = head.run()
    assert end.reason == EndReason.FINISHED
    assert [word.value for word in head.of(facts.FinalReported, 1)] == ["0.5"]
    assert "bytes of them are left out; a final result behind them counts" in end.text


def test_too_many_final_metrics(head_with) -> None:
    """Mutation: each is journalled."""
    head = head_with(function="train:main", max_metrics=10)
    head.script(
        "import trial_runtime as t\ndef main(p):\n    for i in range(5000): t.report_final(i)\n"
    )
    end = head.run()
    assert end.reason == EndReason.FAILED
    assert "more than 10 metrics" in end.text
    assert [word.value for word in head.of(facts.FinalReported, 1)] == [str(i) for i in range(11)]
