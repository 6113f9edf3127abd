"""The head of an experiment: the only module that knows every room.

:func:`create` lays an experiment down, :class:`Head` leads it: it takes the lead, replays
the journal, joins the rooms to the engine, waits for the end and winds everything up in
order. Starting and resuming are the same thing: an empty past is a past.
"""

from __future__ import annotations

import json
import os
import queue
import secrets
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import structlog
import zmq

from dispatcher.backends.local.driver import LocalBackend
from dispatcher.channel import CurveKeys, Router, RouterLink
from dispatcher.clock import SteadyClock
from dispatcher.control.client import RunFile
from dispatcher.control.desk import Desk
from dispatcher.core import State, apply, check, outstanding
from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.core.model import OVER, Phase
from dispatcher.disk_watch import DiskWatch
from dispatcher.engine import Engine
from dispatcher.errors import (
    BequeathError,
    InternalError,
    PermanentBackendError,
    Superseded,
    UserError,
)
from dispatcher.experiment.code_folder import copy_code
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.references import secret_values
from dispatcher.experiment.snapshot import from_json, to_json
from dispatcher.experiment.updates import apply_update
from dispatcher.folders import ExperimentFolder, run_folder
from dispatcher.history import Past
from dispatcher.known_folders import housed
from dispatcher.leading import open_journal, take_the_lead
from dispatcher.logs import head_log
from dispatcher.notices import Notice, NoticeKind
from dispatcher.past import fold_at_start, read_whole_past
from dispatcher.ports import Entry, TunerPort
from dispatcher.restoring import RestoringTuner
from dispatcher.retention import RetentionThread
from dispatcher.store.compaction import Compaction
from dispatcher.store.journal import SqliteJournal
from dispatcher.store.leadership import Leadership
from dispatcher.store.weights_ledger import SqliteWeightsLedger
from dispatcher.tuner_host.driver import TunerHostDriver
from dispatcher.wiring import agent_config, settings_of, tuner_host_config, weights_root
from trial_runtime.endpoint import Endpoint
from trial_runtime.failpoints import failpoint
from trial_runtime.masking import Mask
from trial_runtime.refusals import Refusals
from trial_runtime.weights.paths import resolve_in_root

LOCAL = WorkerId("local")

#: Seconds the tuner gets for its ``_on_exit``, and the agent for the end of its trials
#: beyond their own grace.
TUNER_EXIT_S = 5.0
AGENT_EXIT_S = 10.0


def create(config: ExperimentConfig) -> Path:
    """Make the experiment's folder and the first row of its journal; return the folder.

    Raises:
        BackendError: the folder cannot be made, or lies where a journal is not safe.
    """
    if config.seed is None:
        config = config.model_copy(update={"seed": secrets.randbelow(1 << 31)})
    config = housed(config)
    folder = ExperimentFolder.make(config.experiment_working_directory, config.experiment_name)
    if config.training_service.code_snapshot:
        config = _with_code_snapshot(config, folder)
    failpoint("create.folder.made")
    folder.write_config(to_json(config))
    failpoint("create.config.written")
    weights_root(config, folder).mkdir(parents=True, exist_ok=True)
    journal = SqliteJournal.open(folder.journal)
    try:
        journal.set_meta("experiment", folder.id)
        failpoint("create.journal.made")
        journal.append(
            [Entry(time.time(), e.ExperimentCreated(settings_of(config)))], (), durable=True
        )
    finally:
        journal.close()
    failpoint("create.experiment.journalled")
    return folder.path


def _with_code_snapshot(config: ExperimentConfig, folder: ExperimentFolder) -> ExperimentConfig:
    """Copy the code directory into the experiment, and let trials run from there."""
    try:
        copy_code(config.trial_code_directory, folder.code, (folder.path.parent,))
    except OSError as error:
        raise PermanentBackendError(
            f"cannot copy the code directory: {error.strerror or error}", where=str(folder.code)
        ) from error
    return config.model_copy(update={"trial_code_directory": folder.code})


class Head:
    """Leads one experiment from :meth:`run`'s beginning to its end.

    Args:
        folder: made by :func:`create`.
        on_notice: told what happens, in the thread that called :meth:`run`.
        take_over: lead even if another head does: it is asked to step down, and fenced if it
            does not answer.
    """

    def __init__(
        self,
        folder: Path,
        *,
        on_notice: Callable[[Notice], None] | None = None,
        take_over: bool = False,
    ) -> None:
        self._folder = ExperimentFolder(folder.resolve())
        self._on_notice = on_notice or (lambda notice: None)
        self._notices: queue.SimpleQueue[Notice] = queue.SimpleQueue()
        self._engine: Engine | None = None
        self._early_stop: e.StopRequested | None = None
        self._take_over = take_over
        self._stepping_down = False  # asked to, by a head that takes over
        self._leadership: Leadership
        self._config: ExperimentConfig
        self._mask = Mask()
        self._log: structlog.typing.FilteringBoundLogger

    def request_stop(self, kind: str, reason: str) -> None:
        """Drain (``"drain"``) or stop (``"now"``). From any thread or signal handler."""
        event = e.StopRequested(e.StopKind(kind), reason)
        if self._engine is None:
            self._early_stop = event
        else:
            self._engine.post(event)

    @property
    def trials_over(self) -> int:
        """How many trials have ended and were told to the tuner, in all. From any thread."""
        return self._engine.state.results_seen if self._engine is not None else 0

    def run(self) -> Phase:
        """Lead until the experiment is over, for good or to be resumed. Blocks.

        Raises:
            ExperimentBusy: another head leads it.
            Superseded: another head has taken over; trials go on under that one.
            BequeathError: what ended the engine early; the state on disk can be resumed.
        """
        with ExitStack() as stack:
            lead = take_the_lead(self._folder, take_over=self._take_over)
            self._leadership = stack.enter_context(lead)
            self._config = from_json(self._folder.read_config(), str(self._folder.config))
            self._mask.learn(secret_values(self._config.trial_environment, os.environ))
            self._log = stack.enter_context(
                head_log(self._folder.logs / "head.log", self._config.log_level, self._mask)
            )
            journal = open_journal(self._folder, lead)
            stack.callback(journal.close)
            compaction = Compaction(journal)
            past = read_whole_past(journal, compaction)
            state = past.state
            check(state)
            fold_at_start(journal, compaction, past)
            row = self._begin_epoch(journal, state, lead.epoch)
            failpoint("head.epoch.journalled")
            if state.phase in OVER:
                self._notify(Notice(NoticeKind.FINISHED, state.phase_reason))
            else:
                self._lead(stack, journal, compaction, past._replace(row=row), lead.epoch)
            journal.record_end(lead.epoch, state.phase, state.phase_reason)
            failpoint("head.end.recorded")
            self._pass_on_the_rest()
            return state.phase

    def _begin_epoch(self, journal: SqliteJournal, state: State, epoch: int) -> int:
        now = time.time()
        entries = []
        wanted = settings_of(self._config)
        if wanted != state.settings:  # changed while nobody led
            apply(state, e.SettingsUpdated(wanted), now)
            entries.append(Entry(now, e.SettingsUpdated(wanted)))
        news: list[e.Event] = [e.HeadStarted(epoch)]
        gone = self._removed_by_hand() - state.removed_weights
        if gone:
            news.append(e.RemovalAnnounced(tuple(sorted(gone))))
        for event in news:
            apply(state, event, now)
            entries.append(Entry(now, event))
        row = journal.append(entries, [state.trials[t] for t in state.dirty], durable=True)
        state.dirty.clear()
        return row

    def _removed_by_hand(self) -> set[TrialId]:
        """Trials whose weights went while nobody led (``bequeath weights gc``)."""
        ledger = SqliteWeightsLedger.open(self._folder.journal)
        try:
            return {TrialId(removal.trial) for removal in ledger.removals()}
        finally:
            ledger.close()

    def _lead(
        self,
        stack: ExitStack,
        journal: SqliteJournal,
        compaction: Compaction,
        past: Past,
        epoch: int,
    ) -> None:
        """Join the rooms, let the engine run, wind up in order."""
        state, row = past.state, past.row
        self._check_lead()  # what follows takes the place of another head's socket and files
        sockets = run_folder(self._folder.path, before=journal.get_meta("sockets"))
        if str(sockets) != journal.get_meta("sockets"):
            journal.set_meta("sockets", str(sockets))
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        stack.callback(context.term)
        router = Router(context)
        stack.callback(router.close)
        control_address = router.bind_ipc(sockets / "head")
        token = secrets.token_hex(16)
        router.admit_guests(token)
        endpoints = self._endpoints(router, control_address)

        retention = RetentionThread(self._config, self._folder, self._notify, self._post)
        stack.callback(retention.close)
        disks = DiskWatch(
            (self._folder.path, weights_root(self._config, self._folder)),
            self._config.disk_reserve,
            self._post,
            lambda text: self._notify(Notice(NoticeKind.DISK, text)),
        )
        stack.callback(disks.close)
        driver = self._tuner_driver(router, endpoints["tuner"], epoch)
        tuner = RestoringTuner(driver, journal, compaction, self._folder.restore, past)
        backend = self._local_backend(router, endpoints["agent"], epoch, sockets)
        clock = SteadyClock(state.now)
        watcher = _Watcher(self, retention)

        def refused() -> dict[str, dict[str, int]]:
            return {
                "head": router.refusals() | watcher.faults.counts,
                "agent": backend.statistics().refused,
            }

        engine = Engine(
            state,
            journal,
            router,
            tuner,
            {LOCAL: backend},
            Desk(self._admit, self._update, clock, refused, self._step_down),
            watcher,
            row=row,
            compactor=compaction,
            debug=self._config.debug,
            clock=clock,
        )
        self._engine = engine
        run_file = RunFile(os.getpid(), control_address, token, epoch, time.time(), str(sockets))
        run_file.write(self._folder.path)
        actions = outstanding(state)
        if not state.workers:
            actions.append(a.LaunchWorker(LOCAL))
        if self._early_stop is not None:
            engine.post(self._early_stop)
        self._notify(Notice(NoticeKind.STARTED, f"head {epoch} of {self._folder.id}"))
        try:
            failpoint("head.run_file.written")
            disks.start()  # its first look is there before any worker is
            engine.begin(actions)
            failpoint("head.outstanding.performed")
            engine.start()
            retention.start()
            self._pass_on_notices(engine)
        finally:
            self._wind_up(engine, tuner, backend)
            run_file.remove(self._folder.path)
        if engine.error is not None:
            raise self._explain(engine.error)
        self._check_lead()

    def _check_lead(self) -> None:
        """Raises ``Superseded`` in a head from which another one has taken over."""
        if self._stepping_down or not self._leadership.holds:
            raise Superseded(
                f"another head has taken over from head {self._leadership.epoch}",
                hint="trials go on under that one; 'bequeath status' shows it",
                where=self._folder.id,
            )

    def _step_down(self) -> None:
        """A head that takes over has asked for it. In the engine's thread."""
        self._stepping_down = True
        assert self._engine is not None
        self._engine.abandon()

    def _wind_up(self, engine: Engine, tuner: TunerPort, backend: LocalBackend) -> None:
        """In this order, and why: the engine first, so that nothing new is asked for; the
        tuner next, since nothing will be delivered; then the agent, which ends what runs
        (or, after an error of ours, goes on for its grace: the next head will find it); the
        journal and the channel are closed by the caller's stack, the channel last, so that
        acknowledgements still leave."""
        engine.abandon()
        engine.join(timeout=30.0)
        failpoint("head.engine.over")
        leads = self._leadership.holds
        # A tuner whose successor runs already must do nothing more, not even say goodbye.
        tuner.close(TUNER_EXIT_S if leads else 0.0)
        failpoint("head.tuner.closed")
        backend.close(
            leave_running=engine.error is not None or self._stepping_down or not leads,
            deadline_s=AGENT_EXIT_S + self._config.trial_stop_grace,
        )
        failpoint("head.agent.closed")

    def _endpoints(self, router: Router, ipc: str) -> dict[str, Endpoint]:
        """Where tuner host and agent find us, without their routing ids."""
        channel = self._config.channel
        if channel.transport == "ipc":
            return {"tuner": Endpoint(ipc), "agent": Endpoint(ipc)}
        keys = {n: CurveKeys.kept(self._folder.keys / n) for n in ("head", "tuner", "agent")}
        allowed = [keys["tuner"].public, keys["agent"].public]
        port_file = self._folder.keys / "port"  # agents of the head before look for us there
        port = channel.port or (int(port_file.read_text()) if port_file.exists() else 0)
        # A head that hangs, and was taken over, keeps the port: agents read the new one.
        any_port = not channel.port
        address = router.bind_tcp(channel.host, port, keys["head"], allowed, or_any=any_port)
        port_file.write_text(address.rpartition(":")[2])
        return {
            name: Endpoint(
                address,
                server_key=keys["head"].public,
                public_key=keys[name].public,
                secret_key=keys[name].secret,
            )
            for name in ("tuner", "agent")
        }

    def _tuner_driver(self, router: Router, endpoint: Endpoint, epoch: int) -> TunerHostDriver:
        link = _admit(router, "tuner", "tuner")
        config = tuner_host_config(self._config, self._folder, endpoint, epoch)
        return TunerHostDriver(
            link,
            config,
            self._folder.path,
            on_note=lambda text: self._notify(Notice(NoticeKind.TUNER_NOTE, text)),
        )

    def _local_backend(
        self, router: Router, endpoint: Endpoint, epoch: int, sockets: Path
    ) -> LocalBackend:
        link = _admit(router, LOCAL, "agent:local")
        config = agent_config(self._config, self._folder, endpoint, epoch, sockets)
        leases = self._config.leases
        return LocalBackend(
            link,
            config,
            suspect_s=leases.suspect,
            lost_s=leases.lost,
            leads=lambda: self._leadership.holds,
        )

    # -- what users ask for (engine's thread) ---------------------------------------------

    def _admit(self, parameters: dict[str, Any]) -> e.TrialSubmitted:
        """Canonical paths of a trial by hand. Raises ``UserError``."""
        from trial_runtime.errors import TrialRuntimeError

        keys = self._config.weight_keys
        root = str(weights_root(self._config, self._folder))
        reads = [str(p) for p in self._config.weights_read_roots]
        try:
            save, restore = parameters.get(keys.save), parameters.get(keys.restore)
            return e.TrialSubmitted(
                json.dumps(parameters, allow_nan=False),
                resolve_in_root(root, save) if save is not None else None,
                resolve_in_root(root, restore, read_roots=reads) if restore is not None else None,
            )
        except (TrialRuntimeError, ValueError, TypeError) as error:
            raise UserError(f"cannot submit these parameters: {error}") from error

    def _update(self, key: str, value: Any) -> list[e.Event]:
        """Change a setting, in the record as well. Raises ``UserError``."""
        before = self._config
        config = apply_update(before, key, value)
        self._folder.write_config(to_json(config))
        failpoint("head.config.updated")
        self._config = config
        events: list[e.Event] = [e.SettingsUpdated(settings_of(config))]
        if config.search_space != before.search_space:
            events.append(e.SearchSpaceUpdated(json.dumps(config.search_space)))
        return events

    def _post(self, event: e.Event) -> None:
        assert self._engine is not None
        self._engine.post(event)

    # -- notices --------------------------------------------------------------------------

    def _notify(self, notice: Notice) -> None:
        """From any thread."""
        self._notices.put(notice)

    def _pass_on_notices(self, engine: Engine) -> None:
        while True:
            try:
                notice = self._notices.get(timeout=0.5)
            except queue.Empty:
                if engine.finished.is_set():
                    return
                if not self._leadership.holds:
                    engine.abandon()  # whether or not it has something to commit
                continue
            self._tell(notice)
            if engine.finished.is_set() and self._notices.empty():
                return

    def _tell(self, notice: Notice) -> None:
        notice = replace(notice, text=self._mask(notice.text))
        self._log.info(notice.kind.value, text=notice.text, trial=notice.trial)
        self._on_notice(notice)

    def _pass_on_the_rest(self) -> None:
        while not self._notices.empty():
            self._tell(self._notices.get())

    def _explain(self, error: BaseException) -> BaseException:
        self._log.error("engine ended", error=repr(error), exc_info=error)
        if isinstance(error, BequeathError) or not isinstance(error, Exception):
            return error
        wrapped = InternalError(
            f"{type(error).__name__}: {error}",
            hint="please report this with the head's log; 'bequeath resume' goes on from the "
            "last committed state",
            where=str(self._folder.logs / "head.log"),
        )
        wrapped.__cause__ = error
        return wrapped


class _Watcher:
    """Turns what leaves the engine for the head into notices. Thread: the engine's."""

    def __init__(self, head: Head, retention: RetentionThread) -> None:
        self._head = head
        self._retention = retention
        self.faults = Refusals()

    def act(self, action: a.HeadAction) -> None:
        match action:
            case a.TrialIsOver():
                self._retention.trial_over()
            case a.ReportTunerError(trial=which, method=method, text=text):
                self._head._notify(Notice(NoticeKind.TUNER_ERROR, f"{method}: {text}", which))
            case a.ReportStall(certain=certain, text=text):
                word = "deadlock" if certain else "suspected stall"
                self._head._notify(Notice(NoticeKind.STALL, f"{word}: {text}"))
            case a.ReportWorker(text=text):
                self._head._notify(Notice(NoticeKind.WORKER, text))
            case a.ReportDisk(text=text):
                self._head._notify(Notice(NoticeKind.DISK, text))
            case a.GrantRemoval(trials=trials):
                self._retention.granted(trials)
            case a.Finish(reason=reason):
                self._head._notify(Notice(NoticeKind.FINISHED, reason))

    def stacks(self, stacks: dict[int, str]) -> None:
        folder = self._head._folder.reports
        folder.mkdir(exist_ok=True)
        parts = [f"request {trial}\n{text}" for trial, text in sorted(stacks.items())]
        report = "\n\n".join(parts)
        (folder / "stall.txt").write_text(report + "\n")
        self._head._notify(Notice(NoticeKind.STACKS, report))

    def peer_fault(self, owner: str, error: Exception) -> None:
        who = owner or "a client"
        if self.faults.count(who):  # a peer that goes on would flood the log otherwise
            many = self.faults.counts.get(who, 0)
            self._head._notify(Notice(NoticeKind.PEER_FAULT, f"{who} ({many} so far): {error}"))


def _admit(router: Router, owner: str, name: str) -> RouterLink:
    return router.admit(owner, f"{name}:{secrets.token_hex(16)}")
