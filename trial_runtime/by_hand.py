"""A trial without a dispatcher: the same script, run by hand."""

from __future__ import annotations

import os
import sys
from typing import Any, Optional

import msgspec

from trial_runtime.metric import metric_text
from trial_runtime.parameter_text import FILE_VARIABLE
from trial_runtime.session_file import SESSION_VERSION, PinnedVersion, SessionFile
from trial_runtime.trial_wire import OfferAnswered, Offered


class ByHandSession:
    """A session without a dispatcher: reports are shown, weights stay on this machine.

    Parameters come from the JSON file that ``BEQUEATH_PARAMETERS`` names, if it is set. Weights at
    their ``restore_path``, counted from the current folder, are the parent's. Nothing is saved at
    their ``save_path``: parameters that were copied from an experiment would overwrite its weights.
    """

    def __init__(self) -> None:
        folder = os.path.abspath(os.environ.get("BEQUEATH_FOLDER", "bequeath-by-hand"))
        parameters = _parameters_by_hand()
        self.file = SessionFile(
            version=SESSION_VERSION,
            address="",
            routing="",
            trial=0,
            attempt=0,
            folder=folder,
            parameters=parameters,
            save_path=None,
            restore_path=_parent_by_hand(parameters),
            weights_root=None,
        )
        self._intermediate = 0

    def report_intermediate(self, value: Any) -> None:
        self._intermediate += 1
        _say(f"intermediate result {self._intermediate}: {metric_text(value)}")

    def report_final(self, value: Any) -> None:
        _say(f"final result: {metric_text(value)}")

    def published(self, digest: str, kind: str, nbytes: int) -> None:
        """See :meth:`trial_runtime.session.AgentSession.published`."""
        _say(f"weights saved: {nbytes:,} bytes, digest {digest}")

    def offer(self, offer: Offered) -> OfferAnswered:
        """Accept the version: no other trial can have published one before."""
        number = offer.base + 1
        _say(f"version {number} of {offer.store}: {offer.nbytes:,} bytes, digest {offer.digest}")
        newest = PinnedVersion(offer.store, number, offer.path, offer.digest)
        return OfferAnswered(offer.digest, accepted=True, newest=newest)

    def stop_reason(self) -> str | None:
        return None


def _parameters_by_hand() -> str:
    """Return the parameters as JSON. Raises ``BrokenSession``."""
    path = os.environ.get(FILE_VARIABLE)
    if not path:
        return "{}"
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        msgspec.json.decode(text)  # a text that is not JSON fails here, not later
    except OSError as error:
        raise _broken(f"cannot be read: {error.strerror}", path) from error
    except ValueError as error:  # no UTF-8, or no JSON
        raise _broken(f"holds no JSON: {error}", path) from error
    return text


def _broken(text: str, path: str) -> Exception:
    from trial_runtime.api_errors import BrokenSession

    hint = 'it names a file with the parameters of this run, such as {"lr": 0.1}'
    return BrokenSession(f"{FILE_VARIABLE} names a file that {text}", hint=hint, where=path)


def _parent_by_hand(parameters: str) -> Optional[str]:
    """Return where the parent's weights lie; None if it has none, or nothing is there."""
    given = msgspec.json.decode(parameters)
    path = given.get("restore_path") if isinstance(given, dict) else None
    if path is None:
        return None
    if not isinstance(path, str):
        _say(f"restore_path is {path!r}, and no path: load_weights() returns None")
    elif "://" in path:
        _say(f"{path} is on a store, which is not asked by hand: load_weights() returns None")
    elif path and os.path.exists(path):
        return os.path.abspath(path)
    else:
        _say(f"no weights at {path!r}: load_weights() returns None")
    return None


def _say(text: str) -> None:
    """Print a line for the user who runs the trial by hand."""
    sys.stdout.write(f"[bequeath] {text}\n")
    sys.stdout.flush()
