"""Makes the calls of a past tuner again in this process, and compares the answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from dispatcher.core.events import Proposed
from dispatcher.errors import TunerCodeError
from dispatcher.tuner_host import load
from dispatcher.tuner_host.adapter import adapter_of
from dispatcher.tuner_host.config import TunerHostConfig
from dispatcher.tuner_host.gate import Gate
from dispatcher.tuner_host.host import SERIAL
from dispatcher.tuner_host.proposals import ProposalRules
from dispatcher.tuner_host.request_threads import RequestThreads
from dispatcher.tuner_host.requests import Requests
from dispatcher.tuner_host.restore import Restore, RestoreFile
from dispatcher.tuner_host.run_token import RunToken
from dispatcher.tuner_host.tracebacks import describe


@dataclass(frozen=True, slots=True)
class AnswerDifference:
    """A request with another answer than before. ``now``: JSON text, or why there is none."""

    trial: int
    then: str
    now: str


def rerun(
    config: TunerHostConfig,
    state: str | None,
    calls: list[list[Any]],
    note: Callable[[str], None],
    call_timeout_s: float,
    watch: Callable[[str, int], None] | None = None,
) -> list[AnswerDifference]:
    """Build the tuner here and repeat its calls, so that a debugger can look on. Blocks.

    Args:
        config: names its class, arguments and search space.
        state: of the tuner's own to begin with; None begins at the beginning.
        calls: as in a restore file.
        note: takes a text for the user about anything that did not go as before.
        call_timeout_s: longest time given to one call.
        watch: gets each call before it is made: its name and the trial.

    Raises:
        TunerCodeError: the tuner cannot be built, or does not take its state or search space.
    """
    adapter = adapter_of(config)
    adapter.make_importable()
    before = threading.enumerate()
    tuner = load.build(config)
    run_token = RunToken()
    gate = Gate(run_token, refusal="" if config.multi_thread else SERIAL)
    load.install_gate(tuner.tuner, gate, config.seed, gate.newest)
    try:
        tuner.update_search_space(json.loads(config.search_space))
    except BaseException as error:  # noqa: BLE001 - author's code, SystemExit included
        text = f"the tuner does not take the search space\n{describe(error)}"
        raise TunerCodeError(text) from None
    rules = ProposalRules(
        config.weights_root,
        config.save_key,
        config.restore_key,
        config.weights_read_roots,
        config.max_parameters_bytes,
        any_keys=adapter.any_keys,
    )
    later = partial(adapter.later_answers, note)
    requests = Requests(tuner, gate, run_token, rules, lambda request: None, later=later)
    threads = RequestThreads(requests.run, run_token, note)
    serial = not config.multi_thread or tuner.advisor is not None
    start = requests.run if serial else threads.open
    seen = _Everything(watch)
    try:
        repeat = Restore(
            requests, gate, start, note, call_timeout_s, onlooker=seen, bystanders=before
        )
        repeat.carry_out(RestoreFile(state, calls))
    except OSError:
        raise
    except Exception as error:  # noqa: BLE001 - author's restore
        raise TunerCodeError(f"the tuner cannot be repeated\n{describe(error)}") from None
    return seen.differences


@dataclass
class _Everything:
    """Keeps all differences; an :class:`~dispatcher.tuner_host.restore.Onlooker`."""

    watch: Callable[[str, int], None] | None
    differences: list[AnswerDifference] = field(default_factory=list)

    def about_to(self, name: str, trial: int) -> None:
        """See :meth:`.Onlooker.about_to`."""
        if self.watch is not None:
            self.watch(name, trial)

    def differs(self, trial: int, wanted: str, answer: object) -> None:
        """See :meth:`.Onlooker.differs`."""
        now = answer.parameters if isinstance(answer, Proposed) else _why(answer)
        self.differences.append(AnswerDifference(trial, wanted, now))

    def over(self) -> None:
        """See :meth:`.Onlooker.over`."""


def _why(answer: object) -> str:
    text = getattr(answer, "text", "") or str(getattr(answer, "kind", answer))
    return str(text).strip().rpartition("\n")[2]
