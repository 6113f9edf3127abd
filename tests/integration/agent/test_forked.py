"""What forked trials take over from their server, and what they do not."""

from __future__ import annotations

from trial_runtime.facts import EndReason

#: A module that makes as many handlers as torch does, and some that have work at a trial's end.
LOGS = """
import atexit, logging, logging.handlers
plain = [logging.StreamHandler() for _ in range(40)]
for each in plain:
    each.setFormatter(logging.Formatter("plain: %(message)s"))
logging.getLogger("plain").addHandler(plain[0])
kept = logging.handlers.MemoryHandler(1000, target=logging.FileHandler("kept.log", delay=True))
logging.getLogger("kept").addHandler(kept)

class Late(logging.StreamHandler):
    held = ()
    def emit(self, record):
        self.held += (record.getMessage(),)
    def close(self):
        print("late:", *self.held)
        super().close()

logging.getLogger("late").addHandler(Late())
atexit.register(print, "of the server")
"""


def test_a_trials_end_runs_its_exit_handlers_and_closes_handlers_that_hold_something(head_with):
    head = head_with(function="train:main", reuse="forked", preload=("logs",))
    head.script(LOGS, "logs.py")
    head.script(
        "import atexit, logging\n"
        "def main(p):\n"
        "    for name in ('plain', 'kept', 'late'):\n"
        "        logging.getLogger(name).warning(f'{name} {p[\"x\"]}')\n"
        "    logging.getLogger('own').addHandler(logging.FileHandler(f'own{p[\"x\"]}.log'))\n"
        "    logging.getLogger('own').warning('own')\n"
        "    atexit.register(print, 'of the trial')\n"
        "    return 1.0\n"
    )
    for trial in (1, 2):
        end = head.run(trial, parameters={"x": trial})
        assert end.reason == EndReason.FINISHED, end
        assert head.output(trial, stream="stderr") == f"plain: plain {trial}\n"
        assert head.output(trial) == f"of the trial\nlate: late {trial}\n"
        assert (head.code / f"own{trial}.log").read_text() == "own\n"
    assert (head.code / "kept.log").read_text() == "kept 1\nkept 2\n"


def test_a_trials_own_fork_finds_the_locks_of_inherited_handlers_free(head_with):
    """A thread of the trial holds a handler's lock while another one forks."""
    head = head_with(function="train:main", reuse="forked", preload=("logs",))
    head.script(LOGS, "logs.py")
    head.script(
        "import logs, os, threading\n"
        "def main(p):\n"
        "    held, go_on = threading.Event(), threading.Event()\n"
        "    def hold():\n"
        "        with logs.plain[7].lock:\n"
        "            held.set()\n"
        "            go_on.wait()\n"
        "    thread = threading.Thread(target=hold)\n"
        "    thread.start()\n"
        "    held.wait()\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        os._exit(0 if logs.plain[7].lock.acquire(timeout=20) else 1)\n"
        "    status = os.waitpid(child, 0)[1]\n"
        "    go_on.set()\n"
        "    thread.join()\n"
        "    return float(status)\n"
    )
    head.run(1)
    assert head.finals(1) == [0.0]


def test_what_a_preloaded_modules_thread_holds_is_free_in_a_trial(head_with):
    head = head_with(function="train:main", reuse="forked", preload=("logs", "holding"))
    head.script(LOGS, "logs.py")
    head.script(
        "import logs, threading\n"
        "held = threading.Event()\n"
        "def hold():\n"
        "    with logs.plain[7].lock:\n"
        "        held.set()\n"
        "        threading.Event().wait()\n"
        "threading.Thread(target=hold, daemon=True).start()\n"
        "held.wait()\n",
        "holding.py",
    )
    head.script(
        "import logs\ndef main(p): return float(logs.plain[7].lock.acquire(timeout=20))\n",
    )
    head.run(1)
    assert head.finals(1) == [1.0]
