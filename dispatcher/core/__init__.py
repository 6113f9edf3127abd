"""Everything is decided here; nothing is carried out here.

The core is a pure, synchronous machine. :func:`apply` takes a fact (``events``) and the time and
answers with intents (``actions``), all of which leave only after the fact is on disk. It knows no
clock, no thread, no file and no randomness, so a journal of facts replays to the same state, and
restart is: replay, then carry out :func:`outstanding`. There is no second recovery path.

Four machines live in one record, :class:`~dispatcher.core.model.Trial`, since a request, its
trial and NNI's ``parameter_id`` are one number:

* the *request*: OPEN (the tuner thinks) ⇄ BLOCKED (it waits; holds a thread and nothing else),
  or PARKED ("not now"); it becomes a trial by ``Proposed`` or ends without one;
* the *trial*: HELD (proposed before its parent ended), QUEUED, RUNNING, BACKOFF, DELIVERING,
  ENDED;
* the *attempt*, the newest one only: STARTING, RUNNING, STOPPING. Messages of an older attempt are
  recorded and not counted;
* the *gate*: no verdict, then one, for ever. It gets its verdict when result and end were delivered
  to the tuner, in this order; then waits end and held children move (``gates``).

All that holds for a kind of event is its row in one catalogue (``events``): who may report it, in
which states of its trial it is legal, where it leads, where it is late, whether it is journalled.
Effects are in ``transitions`` by event family, and what follows from the state as a whole (placing,
opening requests, finishing, stalls) is in ``coupling``. A move that neither the catalogue nor a
joint rule has (``arrows``) is refused by ``moves``. How an attempt's end is translated for the
tuner and the children is one function, ``endings.conclude``.

Failures are a policy: which attempt is followed by another is ``endings.retries``; when a worker is
left out, ``quarantine``; when the experiment ends since everything fails, ``failures``; and nothing
new begins while a disk is nearly full. Each such rule has a number in ``settings`` that is off by
default: a journal is replayed under the rules it was written under.

The state is changed in place by its one owner: copying an index of ten thousand trials on each
event would make the cost of a trial grow with the experiment. Refusals come before changes.

What is not beautiful: ``Trial`` carries fields that only some of its states use.
"""

from typing import TYPE_CHECKING

from dispatcher.late_names import fetched_late

if TYPE_CHECKING:
    from dispatcher.core.endings import ENDS_OF_ATTEMPTS, judged_by
    from dispatcher.core.invariants import check
    from dispatcher.core.legality import worker_of
    from dispatcher.core.machine import Step, apply, new_state, next_deadline, outstanding
    from dispatcher.core.model import State

_HOMES = {
    "ENDS_OF_ATTEMPTS": "endings",
    "State": "model",
    "Step": "machine",
    "apply": "machine",
    "check": "invariants",
    "judged_by": "endings",
    "new_state": "machine",
    "next_deadline": "machine",
    "outstanding": "machine",
    "worker_of": "legality",
}

# Those that name a moment or a setting of the core do not wait for all of it.
__getattr__ = fetched_late(__name__, _HOMES)

__all__ = [
    "ENDS_OF_ATTEMPTS",
    "State",
    "Step",
    "apply",
    "check",
    "judged_by",
    "new_state",
    "next_deadline",
    "outstanding",
    "worker_of",
]
