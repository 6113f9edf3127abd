"""The process that holds the author's tuner.

It decides when the tuner's methods are called: one thread per request, results one at a time in
the order in which the head committed them, and the gate of a trial only after its result and its
end were taken. It never decides what the experiment does next: the core does, and the host reports
every wait, answer and delivery to it.

Read ``host.py`` first (which thread does what), then ``gate.py`` and ``run_token.py`` (which
requests wait, which run), then ``delivery.py``. ``driver.py`` is the head's side and the only
module here that runs in the head.
"""

from typing import TYPE_CHECKING

from dispatcher.late_names import fetched_late

if TYPE_CHECKING:
    from dispatcher.tuner_host.config import TunerHostConfig
    from dispatcher.tuner_host.driver import TunerHostDriver

#: Where each name is. It is fetched at its first use: who needs one does not wait for all.
_HOMES = {
    "TunerHostConfig": "config",
    "TunerHostDriver": "driver",
}

__all__ = ["TunerHostConfig", "TunerHostDriver"]

__getattr__ = fetched_late(__name__, _HOMES)
