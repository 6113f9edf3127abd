"""Storage domains: which workers reach the same weights, and how that is made sure.

The head's own weights root is in one domain: that of the local service, or the one without a
name. There the head lays a token down, and agents of other machines take nothing before they have
found it. In any other domain the head sees nothing. The first agent that joins there lays the token
down and reports it; from then on the others of that domain must find the same one.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.service import LOCAL
from dispatcher.wiring.needs import domain_of_place
from dispatcher.wiring.places import Place, places
from trial_runtime.agent.processes.record import write_private

_log = logging.getLogger("bequeath.head")


def domain_of_head(config: ExperimentConfig) -> str:
    """The storage domain that the head's own weights root is in."""
    for place in places(config):
        if place.worker == LOCAL:
            return domain_of_place(place)
    return ""


def unseen_domains(config: ExperimentConfig) -> dict[str, str]:
    """Storage domains by worker, of those whose weights the head does not see."""
    ours = domain_of_head(config)
    domains = {place.worker: domain_of_place(place) for place in places(config)}
    return {worker: domain for worker, domain in domains.items() if domain != ours}


def unseen_weights(config: ExperimentConfig, workers: Mapping[int, str]) -> str:
    """Names the workers whose weights this machine does not see, in a sentence; empty for none.

    Args:
        config: that of the experiment.
        workers: by trial whose weights are not seen, the worker that saved them.
    """
    domains = unseen_domains(config)
    places: dict[str, Counter[str]] = {}
    for worker in workers.values():
        places.setdefault(domains.get(worker, ""), Counter())[worker] += 1
    texts = [
        f"the storage domain {domain!r} (workers {', '.join(sorted(count))})"
        for domain, count in sorted(places.items())
    ]
    if not texts:
        return ""
    trials = "1 trial" if len(workers) == 1 else f"{len(workers)} trials"
    return f"weights of {trials} lie in {' and '.join(texts)}, which is not seen from here"


class Share:
    """The share below the weights roots of one storage domain. From any thread.

    Args:
        name: that of the domain.
        path: file that keeps its token for later heads; None for the head's own domain.
        lay: lays the token of the head's own domain down. Raises ``BackendError``.
    """

    def __init__(self, name: str, path: Path | None, lay: Callable[[], str]) -> None:
        self.name = name
        self.unseen = path is not None  # by the head
        self._path = path
        self._lay = lay
        self._lock = threading.Lock()
        self._known = ""  # the token, once an agent has reported it
        self._first = ""  # the worker that reported the token, as long as this head knows

    def token(self) -> str:
        """The token that agents must find; empty where none of them has reported it yet."""
        if self._path is None:
            return self._lay()
        if self._known:
            return self._known
        try:
            return self._path.read_text(encoding="ascii").strip()
        except FileNotFoundError:
            return ""

    def judge(self, worker: str, token: str) -> str:
        """Why the share of this token is not that of the others, in a sentence; empty if it is.

        The first token of a domain becomes that of all. An empty one is not judged.
        """
        if self._path is None or not token:
            return ""
        with self._lock:
            known = self.token()
            if not known:
                self._known, self._first = token, worker
                try:
                    write_private(self._path, token.encode("ascii", "replace"))
                except OSError as error:  # later heads will take the first token then
                    _log.warning("%s cannot be written: %s", self._path, error.strerror)
            elif known != token:
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
