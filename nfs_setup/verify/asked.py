"""One machine of a survey: asked for facts until it stops answering."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from nfs_setup.errors import SetupError
from nfs_setup.verify.facts import Failure, facts_of
from nfs_setup.verify.peer import Peer, PeerHangs, PeerLost
from nfs_setup.verify.surveyed import MachineFacts

_F = TypeVar("_F")


@dataclass(frozen=True)
class Place:
    """A machine, and where it has the share. ``host``: the same for processes of one."""

    peer: Peer
    path: str
    host: str = ""


class Asked:
    """A machine, and its answers so far in :attr:`facts`.

    Args:
        place: the machine.
        folder: the name of this verification's folder below the share.
        own: the name of this machine's own folder in that.
        limit_s: for what should take no time.
        again: it is a further process of a machine that is asked already.
    """

    def __init__(
        self, place: Place, folder: str, own: str, limit_s: float, again: bool = False
    ) -> None:
        self.path = place.path
        self.own = own
        self.name = place.peer.name
        self.facts = MachineFacts(place.peer.name, place.path, again)
        self.lost = ""  # why it is not asked any more
        self._peer = place.peer
        self._folder = f"{place.path.rstrip('/')}/{folder}"
        self._limit_s = limit_s

    def inside(self, own: str, *names: str) -> str:
        """The path here of what lies in the folder of the machine called ``own``."""
        return "/".join((self._folder, own, *names))

    def ask(self, form: type[_F], what: str, more_s: float = 0.0, **values: Any) -> _F | Failure:
        """Facts, or why there are none.

        Args:
            form: the facts to make of the answer.
            what: the name of the probe.
            more_s: seconds that the probe takes when all is well.
            **values: its arguments.
        """
        if self.lost:
            return Failure(what, "LOST", self.lost)
        try:
            document = self._peer.ask({"do": what, **values}, self._limit_s + more_s)
            if "failed" in document:
                return facts_of(Failure, document["failed"])
            return facts_of(form, document.get("facts"))
        except PeerLost as error:
            self.lost = error.message
            return Failure(what, "HANGS" if isinstance(error, PeerHangs) else "LOST", error.message)
        except SetupError as error:
            return Failure(what, "REFUSED", str(error))
