"""A fresh process for each attempt: the user's command, or a Python that calls a function."""

from __future__ import annotations

import os
import shutil
import sys
from functools import partial

from trial_runtime.agent.attempt import Attempt, CannotStart, Exit
from trial_runtime.agent.processes.children import python_command, spawn
from trial_runtime.agent.processes.sweep import kill_group, signal_group
from trial_runtime.agent.runners.runner import ProcessRunner, RunnerContext
from trial_runtime.agent.runners.workplace import make_checkpoints, make_workplace
from trial_runtime.session_file import (
    CHECKPOINTS_VARIABLE,
    SESSION_VARIABLE,
    write_session,
)

_RUN_FUNCTION = "from trial_runtime.agent.runners.calling import main; main()"


def _with_parent_death_signal() -> list[str]:
    """The prefix that lets a command die with the agent; costs about a millisecond."""
    setpriv = shutil.which("setpriv") if sys.platform == "linux" else None
    return [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []


def _joining(cgroup: str) -> list[str]:
    """The prefix that starts a command inside a control group, some ten milliseconds of Python.

    Empty where there is none.
    """
    if not cgroup:
        return []
    code = "import os,sys;open(sys.argv[1],'w').write('0');os.execvp(sys.argv[2],sys.argv[2:])"
    return [sys.executable, "-I", "-S", "-c", code, f"{cgroup}/cgroup.procs"]


class FreshRunner(ProcessRunner):
    """See :class:`trial_runtime.agent.runners.runner.Runner`.

    If the agent itself is killed, its trials are ended by a parent-death signal, which
    ``setpriv`` (util-linux) asks for where it is there: code of ours in the child would need
    a slow way to fork. Processes that a trial had started in turn are ended by the agent's
    warden, and by the head that watches the agent, or by the next one.
    """

    sweeps_at_once = True

    def __init__(self, context: RunnerContext) -> None:
        super().__init__(context)
        # The user's own text, given to bash as it is: the one place with a shell.
        self._command = [
            *_with_parent_death_signal(),
            *(
                ["bash", "-c", context.spec.command]
                if context.spec.command is not None
                else python_command(_RUN_FUNCTION)
            ),
        ]

    def launch(self, attempt: Attempt) -> None:
        path = attempt.session_path
        write_session(path, attempt.session)
        environment = self._context.environment()
        environment[SESSION_VARIABLE] = path
        environment.update(attempt.share.variables)
        by_variable = self._context.dialect.names_checkpoints
        wants_checkpoints = self._context.spec.command is not None and by_variable
        if attempt.session.checkpoints is not None and wants_checkpoints:
            # A program that does not ask us for it cannot ask us to make it either.
            if not attempt.has_room:  # else it was made beside the loop
                make_checkpoints(attempt.session.checkpoints)
            environment[CHECKPOINTS_VARIABLE] = attempt.session.checkpoints
            further = self._context.spec.checkpoint_variable
            if further and further not in self._context.spec.environment:
                environment[further] = attempt.session.checkpoints
        ends = self._context.outputs.open(attempt)
        try:
            self._context.dialect.furnish(attempt, environment)
            process = spawn(
                [*_joining(attempt.share.cgroup), *self._command, *self._arguments(attempt)],
                folder=self._folder_of(attempt),
                environment=environment,
                stdout=ends[0],
                stderr=ends[1],
                cores=attempt.share.cores,
            )
        finally:
            for end in ends:
                os.close(end)
        # Reaped through its descriptor, with its resource usage; Popen need not look.
        process.returncode = 0
        attempt.pid = process.pid
        self._admit(attempt)
        self._context.children.add(process.pid, partial(self._ended, attempt))
        self._context.events.started(attempt)

    def _arguments(self, attempt: Attempt) -> list[str]:
        """The values of ``"$@"`` in a command, after the name that bash gives itself."""
        arguments = self._context.dialect.arguments(attempt)
        return ["bash", *arguments] if arguments else []

    def _ended(self, attempt: Attempt, outcome: Exit) -> None:
        """Note that the process is gone."""
        self._context.events.exited(attempt, outcome)

    def _folder_of(self, attempt: Attempt) -> str:
        code, own = self._context.spec.code_directory, attempt.session.work_folder
        if not own:
            return code
        try:
            return make_workplace(code, own, self._context.dialect.own_names)
        except OSError as error:
            text = f"cannot make the working directory {own}: {error.strerror}"
            raise CannotStart(text) from error

    def terminate(self, attempt: Attempt) -> None:
        if attempt.exit is None:
            signal_group(attempt.pid, 15)

    def kill(self, attempt: Attempt) -> None:
        if attempt.exit is None:
            kill_group(attempt.pid)

    def close(self) -> None:
        for pid in self._context.children.pids():
            kill_group(pid)
