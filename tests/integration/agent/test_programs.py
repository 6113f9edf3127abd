"""Programs that import nothing of ours: real ones below a real agent."""

from __future__ import annotations

import sys
from pathlib import Path

from trial_runtime import facts
from trial_runtime.agent.config import MetricsSpec, ProgramSpec
from trial_runtime.facts import EndReason

PY = sys.executable

PRINTED = ProgramSpec(metrics=MetricsSpec("acc", also=("loss",), streams=("stdout", "stderr")))

#: Google's library as it writes its file: anew at each report, with the last hundred of them.
HYPERTUNE = """
import collections, json, os, time
path = os.environ["CLOUD_ML_HP_METRIC_FILE"]
queue = collections.deque(maxlen=100)
def report(tag, value, step):
    queue.append({"timestamp": time.time(), "trial": os.environ["CLOUD_ML_TRIAL_ID"],
                  tag: str(float(value)), "global_step": str(step)})
    with open(path, "w") as file:
        for each in queue:
            file.write(json.dumps(each, sort_keys=True) + "\\n")
"""


def test_what_a_program_prints_is_its_results(head_with):
    """Junk, half a character, colours, and a last line that nothing ends. Mutation: what is read
    is not what is kept."""
    head = head_with(command=f"{PY} train.py", program=PRINTED)
    head.script(
        "import sys\n"
        "out = sys.stdout.buffer\n"
        "out.write(b'\\x00\\xff\\xc3 acc=0.1\\n' + bytes(range(256)) + b'\\n')\n"
        "out.write(b'\\x1b[31macc\\x1b[0m=0.2 loss=3 epoch=2\\r50%\\r'); out.flush()\n"
        "sys.stderr.write('acc = 3e-1\\n'); sys.stderr.flush()\n"
        "out.write(b'acc=nan\\nacc=0.4')\n"
    )
    end = head.run(3)
    assert (end.reason, end.text) == (EndReason.FINISHED, "")
    values = [m if isinstance(m, float) else m["default"] for m in head.metrics(3)]
    assert sorted(values) == [0.1, 0.2, 0.3, 0.4]
    assert {"default": 0.2, "loss": 3.0, "step": 2} in head.metrics(3)
    assert head.finals(3) == [{"default": 0.4, "loss": 3.0}]
    kept = (head.folder / "trials" / "3" / "1" / "stdout").read_bytes()
    assert kept.startswith(b"\x00\xff\xc3 acc=0.1\n")
    assert kept.endswith(b"acc=nan\nacc=0.4")
    assert [type(w) for w in head.words[-2:]] == [facts.FinalReported, facts.AttemptEnded]


def test_all_that_a_loud_program_has_printed_is_read(head_with):
    """Into rotated logs, faster than it is read. Mutations: one round at its end, as for pipes that
    nobody reads; lines in parts of the log that are gone."""
    head = head_with(command=f"{PY} train.py", program=PRINTED, max_log_bytes=50_000)
    head.script(
        "import os\n"
        "text = ''.join(f'step {n} acc={n} ' + 'x' * 60 + chr(10) for n in range(20000))\n"
        "data = text.encode()\n"
        "while data: data = data[os.write(1, data):]\n"
        "os._exit(0)\n"
    )
    assert head.run().reason == EndReason.FINISHED
    assert head.finals(1) == [19999.0]
    metrics = head.metrics(1)
    assert metrics == sorted(set(metrics)), "in order, none twice"
    assert metrics[:100] == [float(n) for n in range(100)]


def test_a_program_that_fails_has_no_result_and_its_next_attempt_is_read_anew(head_with):
    head = head_with(command=f"{PY} train.py", program=PRINTED)
    head.script("import sys\nprint('acc=0.9')\nsys.exit(4)\n")
    assert head.run(1, 1).exit_code == 4
    assert (head.metrics(1, 1), head.finals(1, 1)) == ([0.9], [])
    head.script("print('nothing')\n")
    end = head.run(1, 2)
    assert (head.metrics(1, 2), head.finals(1, 2)) == ([], [])
    assert end.text == "no value of 'acc' was in its output"


def test_a_process_that_it_leaves_behind_keeps_nobody_waiting(head_with):
    head = head_with(command="tail -f /dev/null & echo acc=0.5", program=PRINTED)
    assert head.run().reason == EndReason.FINISHED
    assert head.finals(1) == [0.5]


def test_trials_at_once_write_a_file_of_one_name(head_with):
    """And one that lies in the code is nobody's. Mutation: the link to it is written through."""
    program = ProgramSpec(metrics=MetricsSpec("acc", file="metrics.jsonl", format="json"))
    head = head_with(command=f"{PY} train.py", program=program, own_folders=True)
    head.script(
        "import json, os, beside\n"
        "number = int(os.environ['BEQUEATH_TRIAL'])\n"
        "assert os.environ['BEQUEATH_METRICS_FILE'] == os.path.join(os.getcwd(), beside.NAME)\n"
        "with open(beside.NAME, 'x') as file:\n"
        "    for step in range(5):\n"
        "        print(json.dumps({'acc': number + step / 10, 'step': step}), file=file)\n"
    )
    head.script("NAME = 'metrics.jsonl'\n", "beside.py")
    head.script('{"acc": 99}\n', "metrics.jsonl")
    head.until(lambda: head.life, "hello")
    for trial in (1, 2):
        head.start(trial)
    for trial in (1, 2):
        assert head.end_of(trial).reason == EndReason.FINISHED
        assert head.metrics(trial) == [
            {"default": trial + step / 10, "step": step} for step in range(5)
        ]
        assert head.finals(trial) == [{"default": trial + 0.4, "step": 4}]
    assert (head.code / "metrics.jsonl").read_text() == '{"acc": 99}\n'


def test_a_program_for_googles_services_reports_as_it_did(head_with):
    """More reports than its library keeps, in a file that is written anew each time."""
    program = ProgramSpec(metrics=MetricsSpec("acc", hypertune=True, strategies={"acc": "max"}))
    head = head_with(command=f"{PY} train.py", program=program)
    head.script(HYPERTUNE, "hypertune.py")
    head.script(
        "import hypertune\n"
        "from tests.support import hold\n"
        "for step in range(1, 131):\n"
        "    hypertune.report('loss', 9, step)\n"
        "    hypertune.report('acc', step % 100, step)\n"
        "    if step % 40 == 0: hold.until(f'go{step}')\n"
    )
    head.until(lambda: head.life, "hello")
    head.start(1)
    for step in (40, 80, 120):  # its library keeps 100 reports, which are those of 50 steps
        head.until(lambda step=step: len(head.metrics(1)) == step, f"{step} reports")
        head.script("", f"go{step}")
    assert head.end_of(1).reason == EndReason.FINISHED
    assert head.metrics(1) == [{"default": float(n % 100), "step": n} for n in range(1, 131)]
    assert head.finals(1) == [99.0]


def test_a_command_gets_its_parameters_and_no_shell_reads_them(head_with, tmp_path: Path):
    """Mutation: a value as a part of the shell's text."""
    program = ProgramSpec(("arguments", "file"), ("name",), metrics=PRINTED.metrics)
    head = head_with(
        command=f'{PY} train.py "${{BEQUEATH_PARAMETER_name}}" "$@"; echo acc=1', program=program
    )
    head.script(
        "import json, os, sys\n"
        "given = json.load(open(os.environ['BEQUEATH_PARAMETERS']))\n"
        "assert sys.argv[1] == given['name']\n"
        "assert sys.argv[2:] == ['--name=' + given['name'], '--lr=0.5'], sys.argv\n"
    )
    hostile = f"a b'\"$(touch {tmp_path}/made); `touch {tmp_path}/made` \\ * $HOME\n&"
    end = head.run(1, parameters={"name": hostile, "lr": 0.5})
    assert end.reason == EndReason.FINISHED, end
    assert head.output(1, stream="stderr") == ""
    assert not (tmp_path / "made").exists()


def test_what_it_names_and_does_not_have_keeps_it_from_starting(head_with):
    head = head_with(command="true", program=ProgramSpec(templates=("lr",)))
    end = head.run(1, parameters={"layers": 3})
    assert end.reason == EndReason.START_FAILED
    assert "${trialParameters.lr}, and this trial has no such parameter" in end.text
    assert "there are layers" in end.text
