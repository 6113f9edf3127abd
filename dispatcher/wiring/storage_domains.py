"""Storage domains: which workers reach the same weights, and how that is made sure.

The head's own weights root is in one domain: that of the local service, or the one without a
name. There the head lays a token down, and agents elsewhere take nothing before they have found
it. In any other domain the head sees nothing. The first agent that joins there lays the token
down and says it; from then on the others of that domain must find the same one.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.local_service import LocalServiceConfig
from dispatcher.wiring.machines import Place, places
from dispatcher.wiring.needs import domain_of_place
from trial_runtime.agent.record import write_private

_log = logging.getLogger("bequeath.head")


def domain_of_head(config: ExperimentConfig) -> str:
    """The storage domain that the head's own weights root is in."""
    for place in places(config):
        if isinstance(place.service, LocalServiceConfig):
            return domain_of_place(place)
    return ""


def domains_elsewhere(config: ExperimentConfig) -> dict[str, str]:
    """Worker → storage domain, of those whose weights the head does not see."""
    ours = domain_of_head(config)
    found = {place.worker: domain_of_place(place) for place in places(config)}
    return {worker: domain for worker, domain in found.items() if domain != ours}


def unseen_weights(config: ExperimentConfig, workers: Mapping[int, str]) -> str:
    """Whose weights lie where this machine does not see them, in a sentence; empty for nobody's.

    Args:
        config: of the experiment.
        workers: such trials, with the workers that saved them.
    """
    domains = domains_elsewhere(config)
    places: dict[str, Counter[str]] = {}
    for worker in workers.values():
        places.setdefault(domains.get(worker, ""), Counter())[worker] += 1
    told = [
        f"the storage domain {domain!r} (workers {', '.join(sorted(count))})"
        for domain, count in sorted(places.items())
    ]
    if not told:
        return ""
    trials = "1 trial" if len(workers) == 1 else f"{len(workers)} trials"
    return f"weights of {trials} lie in {' and '.join(told)}, which is not seen from here"


class Share:
    """The share below the weights roots of one storage domain. From any thread.

    Args:
        name: of the domain.
        path: where its token is kept for later heads; None for the head's own domain.
        lay: lays the token of the head's own domain down. Raises ``BackendError``.
    """

    def __init__(self, name: str, path: Path | None, lay: Callable[[], str]) -> None:
        self.name = name
        self.elsewhere = path is not None
        self._path = path
        self._lay = lay
        self._lock = threading.Lock()
        self._known = ""  # the token, once one has said it
        self._first = ""  # the worker that said the token, as long as this head knows

    def token(self) -> str:
        """What agents must find; empty where none of them has said it yet."""
        if self._path is None:
            return self._lay()
        if self._known:
            return self._known
        try:
            return self._path.read_text(encoding="ascii").strip()
        except FileNotFoundError:
            return ""

    def judge(self, worker: str, said: str) -> str:
        """Whether what an agent has found is the share of the others; why not, in a sentence."""
        if self._path is None or not said:
            return ""
        with self._lock:
            known = self.token()
            if not known:
                self._known, self._first = said, worker
                try:
                    write_private(self._path, said.encode("ascii", "replace"))
                except OSError as error:  # later heads will believe who speaks first then
                    _log.warning("%s cannot be written: %s", self._path, error.strerror)
            elif known != said:
                others = f"that of {self._first}" if self._first else "what others have there"
                return (
                    f"the weights root of {worker} is another share than {others}, and both are in "
                    f"the storage domain {self.name!r}"
                )
        return ""


class Shares:
    """The shares of all storage domains of an experiment."""

    def __init__(self, config: ExperimentConfig, keys: Path, lay: Callable[[], str]) -> None:
        self._ours = domain_of_head(config)
        self._keys = keys
        self._lay = lay
        self._all: dict[str, Share] = {}

    def of(self, place: Place) -> Share:
        """The share that a worker uses."""
        name = domain_of_place(place)
        if name not in self._all:
            path = None if name == self._ours else self._keys / f"domain-{name.encode().hex()}"
            self._all[name] = Share(name, path, self._lay)
        return self._all[name]
