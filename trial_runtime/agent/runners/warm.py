"""Running attempts inside warm workers: ``reuseMode: inProcess``."""

from __future__ import annotations

import logging
import os
import secrets
import signal
from collections.abc import Sequence

import msgspec

from trial_runtime import wire
from trial_runtime.agent.attempt import Attempt, CannotStart, Exit
from trial_runtime.agent.base.logs import LogFile, make_pipe
from trial_runtime.agent.processes.children import python_command, spawn
from trial_runtime.agent.processes.sweep import kill_group, signal_group
from trial_runtime.agent.runners.output import STREAMS
from trial_runtime.agent.runners.runner import RunnerContext
from trial_runtime.agent.runners.worker import WORKER_VARIABLE, WorkerFile
from trial_runtime.agent.trials.endpoint import Closed, Connection, Heard, Speaker
from trial_runtime.failpoints import failpoint
from trial_runtime.opening import create_private
from trial_runtime.session_file import remove_session

_SERVE = "from trial_runtime.agent.runners.worker import main; main()"
_log = logging.getLogger("bequeath.agent")


class _Worker:
    """One worker process."""

    def __init__(self, number: int, pid: int, speaker: Speaker) -> None:
        self.number = number
        self.pid = pid
        self.speaker = speaker
        self.connection: Connection | None = None  # None until it has connected
        self.attempt: Attempt | None = None
        self.trials = 0
        self.over = False  # its process is gone
        self.signalled = False  # it may be on its way out, however long the kernel takes for that
        self.variables: dict[str, str] = {}  # of its environment, beyond what all share
        self.pipes: list[int] = []  # read ends of its output
        self.files: list[LogFile | None] = []  # the files that its output goes to now


class WarmRunner:
    """See :class:`trial_runtime.agent.runners.runner.Runner`.

    Workers are started when needed, at most as many as attempts run at once, and replaced when
    they die or have done enough.

    Args:
        context: parts of the agent.
        run_folder: the folder for the files of workers, private.
        strays_path: the log for output of workers while no trial runs.
        slots: the number of attempts that may run at once.
    """

    sweeps_at_once = False

    def __init__(
        self, context: RunnerContext, run_folder: str, strays_path: str, slots: int
    ) -> None:
        self._context = context
        self._run_folder = run_folder
        self._slots = slots
        self._idle: list[_Worker] = []
        self._workers: dict[Speaker, _Worker] = {}
        self._of_attempt: dict[tuple[int, int], _Worker] = {}
        self._started = 0
        # Output of workers while no trial runs: imports that warn, threads that go on.
        self._strays = LogFile(
            strays_path, max_bytes=context.spec.max_log_bytes, max_files=context.spec.max_log_files
        )

    def launch(self, attempt: Attempt) -> None:
        self._context.dialect.furnish_session(attempt)
        variables = attempt.share.variables
        worker = self._idle_with(variables) or self._start_worker(variables)
        worker.attempt = worker.speaker.attempt = attempt
        self._of_attempt[attempt.key] = worker
        attempt.pid = worker.pid
        worker.files = [self._context.outputs.log_file(attempt, stream) for stream in STREAMS]
        attempt.stderr = worker.files[1]
        if worker.connection is not None:
            self._push(worker, worker.connection)

    def hear(self, connection: Connection, messages: Sequence[Heard]) -> None:
        """Handle a worker's own messages: it has started, or its function is over."""
        for message in messages:
            worker = self._workers.get(connection.speaker)
            if worker is None:
                return
            if isinstance(message, wire.Done):
                self._take_end(worker, message)
            elif isinstance(message, wire.Attach):
                self._meet(worker, connection, message)
            elif isinstance(message, Closed) and worker.connection is connection:
                kill_group(worker.pid)  # it could never report the end of a function

    def _meet(self, worker: _Worker, connection: Connection, message: wire.Attach) -> None:
        if worker.connection is None and message.pid == worker.pid:
            worker.connection = connection
            remove_session(self._file_path(worker.number))  # read, and secret
            if worker.attempt is not None:
                self._push(worker, connection)

    def _take_end(self, worker: _Worker, message: wire.Done) -> None:
        attempt = worker.attempt
        if attempt is None or attempt.key != tuple(message.attempt):
            return
        self._pump(worker)
        self._release(worker, attempt)
        worker.trials += 1
        enough = self._context.spec.max_trials_per_worker
        # A signal to one trial must not end the next: it may still be on its way.
        if message.spent or worker.signalled or (enough is not None and worker.trials >= enough):
            self._retire(worker)
        else:
            self._idle.append(worker)
        self._context.events.exited(
            attempt,
            Exit(
                code=message.code,
                text=message.text,
                cpu_s=message.cpu_s,
                out_of_memory=message.out_of_memory,
                returned=True,
            ),
        )

    def terminate(self, attempt: Attempt) -> None:
        worker = self._of_attempt.get(attempt.key)
        if worker is not None and not worker.over:
            # The worker is replaced; the signal still lets exit handlers of the trial run.
            worker.signalled = True
            signal_group(worker.pid, signal.SIGTERM)

    def kill(self, attempt: Attempt) -> None:
        worker = self._of_attempt.get(attempt.key)
        if worker is not None and not worker.over:
            worker.signalled = True
            kill_group(worker.pid)

    def forget(self, attempt: Attempt) -> None:
        worker = self._of_attempt.pop(attempt.key, None)
        if worker is not None and worker.over:  # its last messages have been read
            self._release(worker, attempt)
            self._context.endpoint.dismiss(worker.speaker)

    def own_pids(self) -> set[int]:
        return self._context.children.pids()

    def close(self) -> None:
        for worker in list(self._workers.values()):
            kill_group(worker.pid)
        self._strays.close()

    def _idle_with(self, variables: dict[str, str]) -> _Worker | None:
        """An idle worker that was started for these devices; None if there is none.

        A process that has used CUDA keeps to the devices it saw then. Where no idle worker fits,
        one of the others makes room.
        """
        for index in range(len(self._idle) - 1, -1, -1):
            if self._idle[index].variables == variables:
                return self._idle.pop(index)
        if self._idle and len(self._workers) >= self._slots:
            self._retire(self._idle.pop(0))
        return None

    def _push(self, worker: _Worker, connection: Connection) -> None:
        attempt = worker.attempt
        assert attempt is not None
        self._context.endpoint.send(connection, [wire.Run(attempt.session, attempt.session_path)])
        self._context.events.started(attempt)

    def _start_worker(self, variables: dict[str, str]) -> _Worker:
        self._started += 1
        number = self._started
        routing = f"w{number}:{secrets.token_hex(16)}"
        content = WorkerFile(
            self._context.endpoint.address,
            routing,
            os.getpid(),
            self._context.spec.function or "",
            self._context.spec.code_directory,
            self._context.spec.preload,
        )
        path = self._file_path(number)
        with open(create_private(path), "wb") as file:
            file.write(msgspec.json.encode(content))
        failpoint("agent.worker.told")
        environment = self._context.environment()
        environment[WORKER_VARIABLE] = path
        environment.update(variables)
        pipes = [make_pipe() for _ in STREAMS]
        try:
            process = spawn(
                python_command(_SERVE),
                folder=self._context.spec.code_directory,
                environment=environment,
                stdout=pipes[0][1],
                stderr=pipes[1][1],
            )
        except CannotStart:
            for read_end, _ in pipes:
                os.close(read_end)
            raise
        finally:
            for _, write_end in pipes:
                os.close(write_end)
        process.returncode = 0  # reaped through ChildWatch
        worker = _Worker(number, process.pid, self._context.endpoint.admit(routing, None))
        worker.variables = variables
        worker.pipes = [read_end for read_end, _ in pipes]
        worker.files = [None, None]
        self._workers[worker.speaker] = worker
        for index, read_end in enumerate(worker.pipes):
            self._context.watch.add(read_end, lambda i=index: self._pump_one(worker, i))  # type: ignore[misc]
        self._context.children.add(process.pid, lambda outcome: self._died(worker, outcome))
        return worker

    def _file_path(self, number: int) -> str:
        return os.path.join(self._run_folder, f"worker-{number}.json")

    def _pump(self, worker: _Worker) -> None:
        for index in range(len(STREAMS)):
            self._pump_one(worker, index)

    def _pump_one(self, worker: _Worker, index: int) -> None:
        pipe, file = worker.pipes[index], worker.files[index]
        if pipe < 0:
            return
        if file is None:
            file = self._strays
        if not file.pump(pipe):
            self._context.watch.remove(pipe)
            os.close(pipe)
            worker.pipes[index] = -1

    def _release(self, worker: _Worker, attempt: Attempt) -> None:
        for file in worker.files:
            if file is not None:
                file.close()
        worker.files = [None, None]
        worker.attempt = worker.speaker.attempt = None
        self._of_attempt.pop(attempt.key, None)

    def _retire(self, worker: _Worker) -> None:
        if worker.connection is not None:
            self._context.endpoint.send(worker.connection, [wire.Leave()])

    def _died(self, worker: _Worker, outcome: Exit) -> None:
        self._pump(worker)
        for index, pipe in enumerate(worker.pipes):
            if pipe >= 0:
                self._context.watch.remove(pipe)
                os.close(pipe)
                worker.pipes[index] = -1
        self._workers.pop(worker.speaker, None)
        if worker in self._idle:
            self._idle.remove(worker)
        worker.over = True
        if worker.attempt is not None:
            self._context.events.exited(worker.attempt, outcome)
        else:
            self._context.endpoint.dismiss(worker.speaker)
