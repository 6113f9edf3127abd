"""The head of an experiment: joins the rooms that lead it.

:class:`Head` takes the lead, replays the journal, joins the rooms to the engine, waits for
the end and winds everything up in order. (A rehearsal of a tuner joins some of them, too:
``tuner_tools/rehearsal.py``.) Starting and resuming are the same thing: an empty
past is a past.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import zmq

from dispatcher.attempt_files.gathering import Gathering
from dispatcher.channel import Router
from dispatcher.control.client import RunFile
from dispatcher.control.server import ControlServer
from dispatcher.core import State, apply, check, outstanding
from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.core.model import OVER, Phase
from dispatcher.engine import Engine
from dispatcher.errors import (
    BequeathError,
    InternalError,
    Superseded,
)
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.references import secret_values
from dispatcher.experiment.shown import written_out
from dispatcher.experiment.snapshot import from_json
from dispatcher.folders.experiment_folder import ExperimentFolder, run_folder
from dispatcher.folders.ownership import demand_ours
from dispatcher.head.clock import SteadyClock
from dispatcher.head.lead import open_journal, take_the_lead
from dispatcher.head.logs import head_log
from dispatcher.head.notice_board import EngineWatcher, NoticeBoard
from dispatcher.head.story import RefusalStory
from dispatcher.head.user_requests import UserRequests
from dispatcher.head.workers import Workers, load_of, open_endpoints
from dispatcher.maintenance.disk_watch import DiskWatch
from dispatcher.maintenance.retention import (
    RetentionThread,
    gone_when_completed,
    sweep_at_the_end,
)
from dispatcher.notices import Notice, NoticeKind
from dispatcher.ports import JournalEntry, TunerPort
from dispatcher.store.compaction import Compaction
from dispatcher.store.early_stops import mended
from dispatcher.store.journal import SqliteJournal
from dispatcher.store.leadership import Leadership
from dispatcher.store.replay.folding import fold_at_start, read_whole_past
from dispatcher.store.replay.history import Past
from dispatcher.store.replay.restoring import RestoringTuner
from dispatcher.store.replay.showing import ShownFile
from dispatcher.store.trial_rows import ROWS_TO_COMPARE, lagging
from dispatcher.store.weights_ledger import SqliteWeightsLedger
from dispatcher.tuner_host.driver import TunerHostDriver
from dispatcher.wiring.nesting import refuse_nested
from dispatcher.wiring.places import secrets_of_services
from dispatcher.wiring.remote_roots import secrets_of_root
from dispatcher.wiring.settings import settings_of
from dispatcher.wiring.tuner_host import tuner_host_config
from dispatcher.wiring.weights import weights_root
from trial_runtime.descriptors import raise_limit
from trial_runtime.endpoint import Endpoint
from trial_runtime.failpoints import failpoint
from trial_runtime.masking import Mask

#: Seconds the tuner gets for its ``_on_exit``, and the agent for the end of its trials
#: beyond their own grace.
TUNER_EXIT_S = 5.0
AGENT_EXIT_S = 10.0

#: Seconds after which, and again after each, a notice says that the engine has not ended yet.
ENGINE_EXIT_S = 30.0

_STILL_WRITES = (
    "the disk of the journal does not answer: this head ends when what it writes is written; "
    "killed, it loses nothing that was acknowledged"
)

#: Seconds at the end of an experiment for files on other machines, from machines that answer.
FILES_EXIT_S = 60.0


class Head:
    """Leads one experiment from :meth:`run`'s beginning to its end.

    Args:
        folder: made by :func:`dispatcher.experiments.creating.create`.
        on_notice: gets each notice, in the thread that called :meth:`run`.
        take_over: lead even if another head does: it is asked to step down, and fenced if it does
            not answer.
    """

    def __init__(
        self,
        folder: Path,
        *,
        on_notice: Callable[[Notice], None] | None = None,
        take_over: bool = False,
    ) -> None:
        self._folder = ExperimentFolder(folder.resolve())
        self._engine: Engine | None = None
        self._early_stop: e.StopRequested | None = None
        self._take_over = take_over
        self._stepping_down = False  # asked to, by a head that takes over
        self._leadership: Leadership
        self._config: ExperimentConfig
        self._mask = Mask()
        self._board = NoticeBoard(on_notice or (lambda notice: None), self._mask)

    def request_stop(self, kind: str, reason: str) -> None:
        """Drain (``"drain"``) or stop (``"now"``). From any thread or signal handler."""
        event = e.StopRequested(e.StopKind(kind), reason)
        if self._engine is None:
            self._early_stop = event
        else:
            self._engine.post(event)

    @property
    def trials_over(self) -> int:
        """The number of trials that are over and delivered to the tuner. From any thread."""
        return self._engine.state.results_seen if self._engine is not None else 0

    def run(self) -> Phase:
        """Lead until the experiment is over, for good or to be resumed. Blocks.

        Raises:
            ExperimentBusy: another head leads it.
            Superseded: another head has taken over; trials go on under that one.
            NotOurs: the experiment is somebody else's, and its commands are not for us to run.
            BequeathError: what ended the engine early; the state on disk can be resumed.
        """
        demand_ours(self._folder.path)
        refuse_nested()
        with ExitStack() as stack:
            lead = take_the_lead(self._folder, take_over=self._take_over)
            self._leadership = stack.enter_context(lead)
            self._config = from_json(self._folder.read_config(), str(self._folder.config))
            self._mask.learn(secret_values(self._config.trial_environment, os.environ))
            self._mask.learn(written_out(self._config.model_dump(by_alias=True)))
            self._mask.learn(secrets_of_root(self._config))
            self._mask.learn(secrets_of_services(self._config))
            self._board.log = stack.enter_context(
                head_log(self._folder.head_log, self._config.log_level, self._mask)
            )
            journal = open_journal(self._folder, lead)
            stack.callback(journal.close)
            compaction = Compaction(journal)
            past = read_whole_past(journal, compaction)
            state = past.state
            check(state)
            sentence = mended(journal.query, state, compaction.base_number())
            if sentence:
                self._board.pin(NoticeKind.JOURNAL, sentence)
            fold_at_start(journal, compaction, past)
            went = gone_when_completed(journal, self._config, state.epoch)
            row = self._begin_epoch(journal, state, lead.epoch)
            failpoint("head.epoch.journalled")
            if state.phase in OVER:
                self._board.pin(NoticeKind.FINISHED, state.phase_reason)
            else:
                if went:
                    self._board.pin(NoticeKind.RETENTION, went)
                self._lead(stack, journal, compaction, past._replace(row=row), lead.epoch)
            journal.record_end(lead.epoch, state.phase, state.phase_reason)
            failpoint("head.end.recorded")
            self._board.read_out_the_rest()
            return state.phase

    def _begin_epoch(self, journal: SqliteJournal, state: State, epoch: int) -> int:
        now = time.time()
        entries = []
        state.dirty.update(dict.fromkeys(lagging(journal.query(ROWS_TO_COMPARE), state.trials)))
        wanted = settings_of(self._config)
        changed = wanted if wanted != state.settings else None
        news: list[e.Event] = [e.HeadStarted(epoch, changed)]
        gone = self._removed_by_hand() - state.removed_weights
        if gone:
            news.append(e.RemovalAnnounced(tuple(sorted(gone))))
        for event in news:
            apply(state, event, now)
            entries.append(JournalEntry(now, event))
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
        raise_limit()
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
        endpoints = open_endpoints(self._config, self._folder, router, control_address)

        retention = RetentionThread(self._config, self._folder, self._board.pin, self._post)
        stack.callback(retention.close)
        disks = DiskWatch(
            (self._folder.path, weights_root(self._config, self._folder)),
            self._config.disk_reserve,
            self._post,
            lambda text: self._board.pin(NoticeKind.DISK, text),
        )
        stack.callback(disks.close)
        clock = SteadyClock(state.now)
        driver = self._tuner_driver(router, endpoints.tuner, epoch, clock)
        gathering = Gathering(
            self._config, self._folder, lambda text: self._board.pin(NoticeKind.FILES, text)
        )
        tuner = RestoringTuner(
            driver, journal, compaction, self._folder.restore, past, store=self._folder.journal
        )
        workers = Workers(
            self._config,
            self._folder,
            router,
            endpoints,
            epoch=epoch,
            sockets=sockets,
            known=set(state.workers),
            leads=lambda: self._leadership.holds,
            load=partial(load_of, state),
        )
        story = RefusalStory(self._folder, self._mask)
        watcher = EngineWatcher(self._board, retention, self._folder.reports, story)
        users = UserRequests(self._config, self._folder)

        def refused() -> dict[str, dict[str, int]]:
            return {"head": router.refusals() | watcher.faults.counts} | workers.refused()

        control = ControlServer(
            users.admit, users.update, clock, refused, self._step_down, workers.samples
        )
        engine = Engine(
            state,
            journal,
            router,
            tuner,
            dict(workers.drivers),
            control,
            watcher,
            row=row,
            compactor=compaction,
            foreign=workers.foreign,
            debug=self._config.debug,
            clock=clock,
        )
        self._engine = engine
        run_file = RunFile(os.getpid(), control_address, token, epoch, time.time(), str(sockets))
        run_file.write(self._folder.path)
        actions = outstanding(state)
        actions += [a.LaunchWorker(each) for each in workers.workers if each not in state.workers]
        if self._early_stop is not None:
            engine.post(self._early_stop)
        self._board.pin(NoticeKind.STARTED, f"head {epoch} of {self._folder.id}")
        try:
            failpoint("head.run_file.written")
            disks.start()  # its first look is there before any worker is
            engine.begin(actions)
            failpoint("head.outstanding.performed")
            engine.start()
            retention.start()
            gathering.start()
            self._until_it_is_over(engine)
        finally:
            self._wind_up(engine, tuner, workers, gathering)
            run_file.remove(self._folder.path)
        if engine.error is not None:
            raise self._explain(engine.error)
        self._check_lead()
        retention.close()
        if state.phase is Phase.COMPLETED:
            sweep_at_the_end(self._config, self._folder, journal, state, self._board.pin)

    def _check_lead(self) -> None:
        """Raises ``Superseded`` in a head from which another one has taken over."""
        if self._stepping_down or not self._leadership.holds:
            raise Superseded(
                f"another head has taken over from head {self._leadership.epoch}",
                hint="trials go on under that one; 'bequeath status' shows it",
                where=self._folder.id,
            )

    def _step_down(self) -> None:
        """Step down: a head that takes over has asked for it. In the engine's thread."""
        self._stepping_down = True
        assert self._engine is not None
        self._engine.abandon()

    def _wind_up(
        self, engine: Engine, tuner: TunerPort, workers: Workers, gathering: Gathering
    ) -> None:
        """Wind up in this order: the engine first, so that nothing new is asked for; the tuner
        next, since nothing will be delivered; then the agents, which end what runs (or, after an
        error of ours, go on for their grace until the next head connects); then the files that
        their trials have left are fetched; the journal and the channel are closed by the
        caller's stack, the channel last, so that acknowledgements still leave."""
        engine.abandon()
        # However long: its sockets and its journal are its own while it lives, and ZeroMQ ends a
        # process in which two threads use a socket.
        while engine.is_alive():
            engine.join(ENGINE_EXIT_S)
            if engine.is_alive():
                self._board.pin(NoticeKind.DISK, _STILL_WRITES)
                self._board.read_out_the_rest()
        failpoint("head.engine.over")
        leads = self._leadership.holds
        # A tuner whose successor runs already must do nothing more, not even say goodbye.
        tuner.close(TUNER_EXIT_S if leads else 0.0)
        failpoint("head.tuner.closed")
        leaving = engine.error is not None or self._stepping_down or not leads
        workers.close(
            leave_running=leaving,
            deadline_s=AGENT_EXIT_S + self._config.trial_stop_grace,
        )
        failpoint("head.agent.closed")
        gathering.finish(0.0 if leaving else FILES_EXIT_S)

    def _tuner_driver(
        self, router: Router, endpoint: Endpoint, epoch: int, clock: SteadyClock
    ) -> TunerHostDriver:
        link = router.admit("tuner", f"tuner:{secrets.token_hex(16)}")
        config = tuner_host_config(self._config, self._folder, endpoint, epoch)
        return TunerHostDriver(
            link,
            config,
            self._folder.path,
            on_note=lambda text: self._board.pin(NoticeKind.TUNER_NOTE, text),
            shown=ShownFile(self._folder.journal, self._folder.shown, clock),
        )

    def _post(self, event: e.Event) -> None:
        assert self._engine is not None
        self._engine.post(event)

    def _until_it_is_over(self, engine: Engine) -> None:
        while not (engine.finished.is_set() and self._board.empty):
            if self._board.read_out_one(timeout_s=0.5):
                continue
            if not self._leadership.holds:
                engine.abandon()  # whether or not it has something to commit

    def _explain(self, error: BaseException) -> BaseException:
        self._board.log.error("engine ended", error=repr(error), exc_info=error)
        if isinstance(error, BequeathError) or not isinstance(error, Exception):
            return error
        wrapped = InternalError(
            f"{type(error).__name__}: {error}",
            hint="please report this with the head's log; 'bequeath resume' goes on from the "
            "last committed state",
            where=str(self._folder.head_log),
        )
        wrapped.__cause__ = error
        return wrapped
