"""An experiment that is led: joins the rooms that lead it, and winds them up in order.

(A rehearsal of a tuner joins engine, journal and tuner host by itself:
``tuner_tools/rehearsal.py``.)
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dispatcher.attempt_files.gathering import Gathering
from dispatcher.attempt_files.kept_logs import LogKeeper
from dispatcher.channel import Router
from dispatcher.channel.router import context_for
from dispatcher.control.client import RunFile
from dispatcher.control.server import ControlServer
from dispatcher.core import actions as a
from dispatcher.core import check, outstanding
from dispatcher.core.model import OVER, Phase
from dispatcher.engine import Engine
from dispatcher.errors import DispatcherError, InternalError, Superseded
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.folders.experiment_folder import ExperimentFolder, run_folder
from dispatcher.head.beginning import begin_epoch, news_of_head
from dispatcher.head.clock import SteadyClock
from dispatcher.head.endpoints import HeadEndpoints, open_endpoints
from dispatcher.head.engine_inbox import EngineInbox
from dispatcher.head.lead import open_journal
from dispatcher.head.logs import HeadLog
from dispatcher.head.notice_board import EngineWatcher, NoticeBoard
from dispatcher.head.ordering import Ordering, costed_places
from dispatcher.head.sink_process import SinkProcess
from dispatcher.head.story import RefusalStory
from dispatcher.head.user_requests import UserRequests
from dispatcher.head.workers import Workers
from dispatcher.maintenance.disk_watch import DiskWatch
from dispatcher.maintenance.retention import (
    RetentionThread,
    gone_when_completed,
    sweep_at_the_end,
)
from dispatcher.notices import Notice, NoticeKind
from dispatcher.ports import TunerPort
from dispatcher.store.compaction import Compaction
from dispatcher.store.early_stops import mended
from dispatcher.store.journal import SqliteJournal
from dispatcher.store.leadership import Leadership
from dispatcher.store.replay.folding import fold_at_start, read_whole_past
from dispatcher.store.replay.history import Past
from dispatcher.store.replay.restoring import RestoringTuner
from dispatcher.store.replay.showing import ShownFile
from dispatcher.tuner_host.driver import TunerHostDriver
from dispatcher.wiring.settings import settings_of
from dispatcher.wiring.tuner_host import tuner_host_config
from dispatcher.wiring.weights import weights_root
from trial_runtime.descriptors import raise_limit
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


@dataclass(frozen=True, slots=True)
class Rooms:
    """The rooms that lead one experiment, joined. None of their threads runs yet."""

    engine: Engine
    tuner: TunerPort
    workers: Workers
    logs: LogKeeper
    gathering: Gathering
    retention: RetentionThread
    disks: DiskWatch
    run_file: RunFile


@dataclass(frozen=True, slots=True)
class _Channel:
    """The sockets of a head, and how others get to them."""

    router: Router
    sockets: Path
    control_address: str
    token: str
    endpoints: HeadEndpoints


class LedExperiment:
    """One experiment under one head. All methods in the head's thread, but :meth:`step_down`.

    Args:
        folder: the experiment's.
        config: its file as it is now.
        leadership: held for as long as this is used.
        mask: hides all secrets that the head knows.
        log: the head's.
        on_notice: gets each notice.
        inbox: of the engine to be made; what waits there is the first that it hears.
    """

    def __init__(
        self,
        folder: ExperimentFolder,
        config: ExperimentConfig,
        leadership: Leadership,
        mask: Mask,
        log: HeadLog,
        on_notice: Callable[[Notice], None],
        inbox: EngineInbox,
    ) -> None:
        self._folder = folder
        self._config = config
        self._leadership = leadership
        self._mask = mask
        self._log = log
        self._board = NoticeBoard(on_notice, mask, log)
        self._inbox = inbox
        self._sinks = SinkProcess(folder, log, wanted=bool(config.fed))
        self._stepping_down = False  # asked to, by a head that takes over

    def run(self) -> Phase:
        """Lead until the experiment is over, for good or to be resumed. Blocks.

        Raises:
            Superseded: another head has taken over; trials go on under that one.
            DispatcherError: what ended the engine early; the state on disk can be resumed.
        """
        epoch = self._leadership.epoch
        with ExitStack() as stack:
            stack.callback(self._sinks.close)
            journal = open_journal(self._folder, self._leadership)
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
            news = news_of_head(epoch, state, settings_of(self._config), self._folder.journal)
            row = begin_epoch(journal, state, news, time.time(), durable=True)
            failpoint("head.epoch.journalled")
            if state.phase in OVER:
                self._board.pin(NoticeKind.FINISHED, state.phase_reason)
            else:
                if went:
                    self._board.pin(NoticeKind.RETENTION, went)
                self._lead(stack, journal, compaction, past._replace(row=row))
            journal.record_end(epoch, state.phase, state.phase_reason)
            failpoint("head.end.recorded")
            self._sinks.close()  # with the end on record, and before the journal tidies up
            self._board.read_out_the_rest()
            return state.phase

    def _lead(
        self, stack: ExitStack, journal: SqliteJournal, compaction: Compaction, past: Past
    ) -> None:
        """Join the rooms, let the engine run, wind up in order."""
        state = past.state
        rooms = self.join(stack, journal, compaction, past)
        rooms.run_file.write(self._folder.path)
        actions = outstanding(state)
        new = (each for each in rooms.workers.workers if each not in state.workers)
        actions += [a.LaunchWorker(each) for each in new]
        head = f"head {self._leadership.epoch} of {self._folder.id}"
        self._board.pin(NoticeKind.STARTED, head)
        try:
            failpoint("head.run_file.written")
            rooms.disks.start()  # its first look is there before any worker is
            rooms.engine.begin(actions)
            failpoint("head.outstanding.performed")
            rooms.engine.start()
            rooms.retention.start()
            rooms.gathering.start()
            self._until_it_is_over(rooms.engine)
        finally:
            self.wind_up(rooms)
            rooms.run_file.remove(self._folder.path)
        if rooms.engine.error is not None:
            raise self._explain(rooms.engine.error)
        self._check_lead()
        rooms.retention.close()
        if state.phase is Phase.COMPLETED:
            sweep_at_the_end(self._config, self._folder, journal, state, self._board.pin)

    def join(
        self, stack: ExitStack, journal: SqliteJournal, compaction: Compaction, past: Past
    ) -> Rooms:
        """Join the rooms to an engine, which hears first of what has waited in the inbox.

        Args:
            stack: closes what :meth:`wind_up` does not.
            journal: under our epoch.
            compaction: of the journal.
            past: what the journal holds, up to the row that says that we lead.

        Raises:
            Superseded: another head has taken over.
        """
        config, folder, pin, state = self._config, self._folder, self._board.pin, past.state
        raise_limit()
        self._check_lead()  # what follows takes the place of another head's socket and files
        channel = self._open_channel(stack, journal)
        retention = RetentionThread(config, folder, pin, self._inbox.post)
        stack.callback(retention.close)
        places = (folder.path, weights_root(config, folder))
        disks = DiskWatch(
            places, config.disk_reserve, self._inbox.post, partial(pin, NoticeKind.DISK)
        )
        stack.callback(disks.close)
        clock = SteadyClock(state.now)
        driver = self._tuner_driver(channel, clock)
        tuner = RestoringTuner(
            driver, journal, compaction, folder.restore, past, store=folder.journal
        )
        logs = LogKeeper(folder, config.disk_reserve, partial(pin, NoticeKind.FILES))
        workers = self._workers(channel, past, clock, logs)
        story = RefusalStory(folder, self._mask)
        watcher = EngineWatcher(self._board, retention, folder.reports, story)
        engine = Engine(
            state,
            journal,
            channel.router,
            tuner,
            dict(workers.drivers),
            self._control(channel.router, workers, watcher, clock),
            watcher,
            row=past.row,
            compactor=compaction,
            foreign=workers.foreign,
            debug=config.debug,
            clock=clock,
        )
        self._inbox.connect(engine)
        return Rooms(
            engine,
            tuner,
            workers,
            logs,
            Gathering(config, folder, partial(pin, NoticeKind.FILES)),
            retention,
            disks,
            self._run_file(channel),
        )

    def _open_channel(self, stack: ExitStack, journal: SqliteJournal) -> _Channel:
        sockets = run_folder(self._folder.path, before=journal.get_meta("sockets"))
        if str(sockets) != journal.get_meta("sockets"):
            journal.set_meta("sockets", str(sockets))
        context = context_for(len(self._config.workers))
        stack.callback(context.term)
        router = Router(context)
        stack.callback(router.close)
        control_address = router.bind_ipc(sockets / "head")
        token = secrets.token_hex(16)
        router.admit_guests(token)
        endpoints = open_endpoints(self._config, self._folder, router, control_address)
        return _Channel(router, sockets, control_address, token, endpoints)

    def _tuner_driver(self, channel: _Channel, clock: SteadyClock) -> TunerHostDriver:
        link = channel.router.admit("tuner", f"tuner:{secrets.token_hex(16)}")
        endpoint = channel.endpoints.tuner
        config = tuner_host_config(self._config, self._folder, endpoint, self._leadership.epoch)
        return TunerHostDriver(
            link,
            config,
            self._folder.path,
            on_note=partial(self._board.pin, NoticeKind.TUNER_NOTE),
            shown=ShownFile(self._folder.journal, self._folder.shown, clock),
        )

    def _workers(
        self, channel: _Channel, past: Past, clock: SteadyClock, logs: LogKeeper
    ) -> Workers:
        return Workers(
            self._config,
            self._folder,
            channel.router,
            channel.endpoints,
            epoch=self._leadership.epoch,
            sockets=channel.sockets,
            known=set(past.state.workers),
            leads=self._leadership.held_lately,
            keep_logs=logs.take,
            load=Ordering(costed_places(self._config), past.state, clock).load_of,
            clock=clock,
        )

    def _control(
        self, router: Router, workers: Workers, watcher: EngineWatcher, clock: SteadyClock
    ) -> ControlServer:
        def refused() -> dict[str, dict[str, int]]:
            return {"head": router.refusals() | watcher.faults.counts} | workers.refused()

        users = UserRequests(self._config, self._folder)
        return ControlServer(
            users.admit,
            users.update,
            clock,
            refused,
            self.step_down,
            workers.samples,
            workers.read,
            workers.ways,
        )

    def _run_file(self, channel: _Channel) -> RunFile:
        return RunFile(
            os.getpid(),
            channel.control_address,
            channel.token,
            self._leadership.epoch,
            time.time(),
            str(channel.sockets),
        )

    def _check_lead(self) -> None:
        """Raises ``Superseded`` in a head from which another one has taken over."""
        if self._stepping_down or not self._leadership.holds:
            raise Superseded(
                f"another head has taken over from head {self._leadership.epoch}",
                hint="trials go on under that one; 'bequeath status' shows it",
                where=self._folder.id,
            )

    def step_down(self) -> None:
        """Step down: a head that takes over has asked for it. In the engine's thread."""
        self._stepping_down = True
        self._inbox.abandon()

    def wind_up(self, rooms: Rooms) -> None:
        """Wind up in this order: the engine first, so that nothing new is asked for; the tuner
        next, since nothing will be delivered; then the agents, which end what runs (or, after an
        error of ours, go on for their grace until the next head connects); then the files that
        their trials have left are fetched; the journal and the channel are closed by the
        caller's stack, the channel last, so that acknowledgements still leave."""
        engine = rooms.engine
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
        rooms.tuner.close(TUNER_EXIT_S if leads else 0.0)
        failpoint("head.tuner.closed")
        leaving = engine.error is not None or self._stepping_down or not leads
        rooms.workers.close(
            leave_running=leaving,
            deadline_s=AGENT_EXIT_S + self._config.trial_stop_grace,
        )
        failpoint("head.agent.closed")
        rooms.logs.close()
        rooms.gathering.finish(0.0 if leaving else FILES_EXIT_S)

    def _until_it_is_over(self, engine: Engine) -> None:
        while not (engine.finished.is_set() and self._board.empty):
            self._sinks.watch()
            if self._board.read_out_one(timeout_s=0.5):
                continue
            if not self._leadership.holds:
                engine.abandon()  # whether or not it has something to commit

    def _explain(self, error: BaseException) -> BaseException:
        self._log.error("engine ended", error=repr(error), exc_info=error)
        if isinstance(error, DispatcherError) or not isinstance(error, Exception):
            return error
        wrapped = InternalError(
            f"{type(error).__name__}: {error}",
            hint="please report this with the head's log; 'bequeath resume' goes on from the "
            "last committed state",
            where=str(self._folder.head_log),
        )
        wrapped.__cause__ = error
        return wrapped
