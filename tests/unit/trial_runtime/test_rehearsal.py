"""A fork server's rehearsal changes nothing that a trial could see."""

from __future__ import annotations

import json
import os
import subprocess
import sys

CODE = """
import json, os, sys, threading
from trial_runtime import session
from trial_runtime.agent.runners import rehearsal

def seen():
    files = {each: os.readlink(f"/proc/self/fd/{each}") for each in os.listdir("/proc/self/fd")
             if os.path.exists(f"/proc/self/fd/{each}")} if os.path.isdir("/proc/self/fd") else {}
    return [dict(os.environ), files, session._current, sys.path, threading.active_count()]

rehearsal.rehearse(sys.argv[1])  # the folder of the code comes into the path, as it would anyway
before = seen()
rehearsal.rehearse(sys.argv[1])
print(json.dumps([before, seen()]))
"""


def test_a_rehearsal_leaves_no_trace_and_is_no_step_of_a_trial(tmp_path):
    """Mutation: a failpoint strikes in the server, at what its trials have not done yet."""
    environment = {**os.environ, "BEQUEATH_FAILPOINTS": "trial.final.reported@*=exit:9"}
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    before, after = json.loads(done.stdout)
    assert before == after
    assert before[2] is None


def test_a_rehearsal_reports_a_result_like_a_trial(tmp_path):
    """Mutation: the function is not called, or what it returns is not reported."""
    code = (
        "import sys\n"
        "from trial_runtime import link, trial_wire\n"
        "from trial_runtime.agent.runners import rehearsal\n"
        "post, finals = link.AgentLink.post, []\n"
        "def noted(self, messages, **how):\n"
        "    finals.extend(m.value for m in messages if isinstance(m, trial_wire.Final))\n"
        "    post(self, messages, **how)\n"
        "link.AgentLink.post = noted\n"
        "rehearsal.rehearse(sys.argv[1])\n"
        "print(*sorted(set(finals)), len(finals) > 8)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("1.0 True\n", "")
