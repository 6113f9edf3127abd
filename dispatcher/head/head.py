"""The head of an experiment: takes the lead, and leads to the end.

:class:`Head` is what a process has of it: begun, asked to stop, run.
:mod:`~dispatcher.head.led_experiment` joins the rooms. Starting and resuming are the same thing:
an empty past is a past.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from dispatcher.core import State
from dispatcher.core import events as e
from dispatcher.core.model import Phase
from dispatcher.experiment.snapshot import from_json
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.folders.ownership import demand_ours
from dispatcher.folders.studies import refuse_study
from dispatcher.head.engine_inbox import EngineInbox
from dispatcher.head.lead import take_the_lead
from dispatcher.head.led_experiment import LedExperiment
from dispatcher.head.logs import head_log
from dispatcher.notices import Notice
from dispatcher.wiring.masks import mask_of
from dispatcher.wiring.nesting import refuse_nested


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
        self._take_over = take_over
        self._on_notice = on_notice or (lambda notice: None)
        self._inbox = EngineInbox()

    def request_stop(self, kind: str, reason: str) -> None:
        """Drain (``"drain"``) or stop (``"now"``). From any thread or signal handler."""
        self._inbox.post(e.StopRequested(e.StopKind(kind), reason))

    @property
    def state(self) -> State | None:
        """The state of the experiment, readable from any thread; None before it is led."""
        return self._inbox.state

    @property
    def trials_over(self) -> int:
        """The number of trials that are over and delivered to the tuner. From any thread."""
        state = self.state
        return 0 if state is None else state.results_seen

    def run(self) -> Phase:
        """Lead until the experiment is over, for good or to be resumed. Blocks.

        Raises:
            ExperimentBusy: another head leads it.
            Superseded: another head has taken over; trials go on under that one.
            NotOurs: the experiment is somebody else's, and its commands are not for us to run.
            UserError: it is a study, which the program leads that asks and tells.
            DispatcherError: what ended the engine early; the state on disk can be resumed.
        """
        demand_ours(self._folder.path)
        refuse_nested()
        refuse_study(self._folder)
        with ExitStack() as stack:
            lead = take_the_lead(self._folder, take_over=self._take_over)
            leadership = stack.enter_context(lead)
            config = from_json(self._folder.read_config(), str(self._folder.config))
            mask = mask_of(config)
            log = stack.enter_context(head_log(self._folder.head_log, config.log_level, mask))
            return LedExperiment(
                self._folder, config, leadership, mask, log, self._on_notice, self._inbox
            ).run()
