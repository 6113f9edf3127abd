"""Intents that leave the core, in the imperative. All leave *after* the batch is committed."""

from dataclasses import dataclass
from typing import TypeAlias

from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.core.model import FailReason, Phase, Pinned, Verdict, Version
from trial_runtime.facts import StartAttempt as StartAttempt
from trial_runtime.facts import StopAttempt as StopAttempt

# -- to the tuner host ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LaunchTuner:
    """Start (or start again) the tuner host."""


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """Call ``generate_parameters(trial)`` in a thread of its own."""

    trial: TrialId


@dataclass(frozen=True, slots=True)
class CancelRequest:
    """Let the waits of this request raise ``WaitCancelled``; its answer is not wanted."""

    trial: TrialId


@dataclass(frozen=True, slots=True)
class AnswerWait:
    """The answer to a wait that needs no parent to end: granted, or refused with the reason.

    ``kind``: ``granted``, ``failed`` (``parent``, ``reason``, ``chain``), ``unknown`` (``parent``),
    ``self``, or ``cycle`` (``chain`` is the cycle, first equals last). ``parents`` are those whose
    gates are open. ``version``: the number of the version of the shared store that the request has
    waited for.
    """

    trial: TrialId
    ticket: int
    kind: str
    parents: tuple[TrialId, ...] = ()
    parent: TrialId | None = None
    reason: FailReason | None = None
    chain: tuple[TrialId, ...] = ()
    version: int = 0


@dataclass(frozen=True, slots=True)
class Deliver:
    """Tell the tuner of a trial's end: ``receive_trial_result`` if ``value`` is there, then
    ``trial_end(success)``, then open the gate with ``verdict``. Serial, in this order."""

    trial: TrialId
    parameters: str
    value: str | None
    success: bool
    verdict: Verdict
    result_delivered: bool = False  # by a host before this one: do not repeat the result
    by_hand: bool = False


@dataclass(frozen=True, slots=True)
class OpenGate:
    """A request ended without a trial: release the threads that wait for it."""

    trial: TrialId
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class TellSearchSpace:
    """Call ``update_search_space``."""

    search_space: str


@dataclass(frozen=True, slots=True)
class TellVersion:
    """A shared store has this newest version now, which ``trial`` has published (None: some trial,
    before the tuner's process was there). Waits for it are over."""

    store: str
    number: int
    trial: TrialId | None = None


@dataclass(frozen=True, slots=True)
class TellImport:
    """Call ``import_data`` with results of another experiment (``data``: JSON text)."""

    number: int
    data: str


@dataclass(frozen=True, slots=True)
class Assess:
    """Show the assessor an intermediate metric (``value``: JSON text) of a running trial.

    ``attempt`` and ``seq`` tell it from those that a new tuner host has read already.
    """

    trial: TrialId
    value: str
    attempt: int = 0
    seq: int = 0


@dataclass(frozen=True, slots=True)
class AskStacks:
    """Report the Python stacks of these requests' threads."""

    trials: tuple[TrialId, ...]


# -- to workers ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LaunchWorker:
    """Start (or start again) this agent."""

    worker: WorkerId


@dataclass(frozen=True, slots=True)
class AnswerOffer:
    """Answer an attempt's offer of a version (``digest``): whether it is a version of the store
    now.

    ``newest`` is the store's newest version: its own if it was ``accepted``. ``refusal`` is the
    reason why no such offer can ever be accepted; empty where another version came first.
    """

    worker: WorkerId
    trial: TrialId
    attempt: int
    digest: str
    accepted: bool
    newest: Pinned | None = None
    refusal: str = ""


# -- to the head ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReportTunerError:
    """Show a tuner's exception to the user."""

    trial: TrialId | None
    method: str
    text: str


@dataclass(frozen=True, slots=True)
class ReportStall:
    """Nothing moves: name which requests wait for which."""

    certain: bool  # a deadlock, not a suspicion
    text: str
    trials: tuple[TrialId, ...]


@dataclass(frozen=True, slots=True)
class ReportAsking:
    """More requests are asked for than NNI would: ``text`` says why."""

    text: str


@dataclass(frozen=True, slots=True)
class ReportWorker:
    """A worker fell silent, was put in quarantine, or came back from either."""

    worker: WorkerId
    text: str


@dataclass(frozen=True, slots=True)
class ReportTrial:
    """A trial will never run: ``text`` says why."""

    trial: TrialId
    text: str


@dataclass(frozen=True, slots=True)
class ReportDisk:
    """A file system is nearly full, or has room again."""

    place: str
    text: str


@dataclass(frozen=True, slots=True)
class TrialIsOver:
    """A trial ended, and tuner and children know: retention may look at it."""

    trial: TrialId


@dataclass(frozen=True, slots=True)
class GrantRemoval:
    """These announced trials may lose their weights: nobody may inherit from them now."""

    trials: tuple[TrialId, ...]


@dataclass(frozen=True, slots=True)
class ReviewStores:
    """A shared store has more versions than are to be kept, and some that nobody needs: the
    weight keeper may look."""


@dataclass(frozen=True, slots=True)
class GrantVersions:
    """These versions of shared stores may go, by name and number: nobody may pin them any more.
    ``kept`` are all others that there were when it was asked, by ``question``."""

    removed: tuple[tuple[str, int, Version], ...]
    kept: tuple[tuple[str, int, Version], ...]
    question: int = 0


@dataclass(frozen=True, slots=True)
class Finish:
    """The experiment is over for this head."""

    phase: Phase
    reason: str


TunerAction: TypeAlias = (
    LaunchTuner
    | OpenRequest
    | CancelRequest
    | AnswerWait
    | Deliver
    | OpenGate
    | TellSearchSpace
    | TellVersion
    | TellImport
    | Assess
    | AskStacks
)
WorkerAction: TypeAlias = LaunchWorker | StartAttempt | StopAttempt | AnswerOffer
HeadAction: TypeAlias = (
    ReportTunerError
    | ReportStall
    | ReportAsking
    | ReportWorker
    | ReportTrial
    | ReportDisk
    | TrialIsOver
    | GrantRemoval
    | ReviewStores
    | GrantVersions
    | Finish
)
Action: TypeAlias = TunerAction | WorkerAction | HeadAction
