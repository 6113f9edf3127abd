"""The functions of a trial. By hand, without bequeath, they answer as NNI's standalone mode."""

from __future__ import annotations

import logging
import os
import sys
from typing import Any

from ._json import dump

#: The ids that NNI gives a script that is run by hand.
STANDALONE = "STANDALONE"

_log = logging.getLogger("nni")
_params: Any = None
_asked = False
_intermediates = 0
_of: Any = None  # the trial of a warm worker that the three are of


def _is_trial() -> bool:
    """Whether an agent runs this: its environment names a session or, in a warm worker, there is
    one without a file. In a worker trials follow one another, and each begins as in a process of
    its own."""
    global _asked, _intermediates, _of, _params
    if "BEQUEATH_SESSION" in os.environ:
        return True
    sessions = sys.modules.get("trial_runtime.session")  # not imported: by hand it takes its time
    given = sessions.given() if sessions is not None else None
    if given is None:
        return False
    if given is not _of:
        _of, _params, _asked, _intermediates = given, None, False, 0
    return True


def get_next_parameter() -> Any:
    """The parameters of this trial, at the first call; None at any later one, as in NNI."""
    global _asked, _params
    if not _is_trial():
        return _by_hand()
    if _asked:
        return None
    import trial_runtime

    _params = trial_runtime.get_parameters()
    _asked = True
    return _params


get_next_parameters = get_next_parameter  # v2.8
get_parameters = get_next_parameter  # before v0.3


def get_current_parameter(tag: Any = None) -> Any:
    """The parameters that were asked for last, or one of them; None before that."""
    _is_trial()
    if _params is None or tag is None:
        return _params
    return _params[tag]


def report_intermediate_result(metric: Any) -> None:
    """Report how the trial goes on: a number, a dict with ``default``, or any JSON value."""
    global _intermediates
    if not _is_trial():
        _say(f"intermediate result {_intermediates}: {_shown(metric)}")
        _intermediates += 1
        return
    _intermediates += 1
    from trial_runtime.nni_shim.any_metric import report_any

    report_any(metric, final=False)


def report_final_result(metric: Any) -> None:
    """Report the result of the trial, which its tuner gets unchanged when the trial has ended."""
    if not _is_trial():
        _say(f"final result: {_shown(metric)}")
        return
    from trial_runtime.nni_shim.any_metric import report_any

    report_any(metric, final=True)


def get_experiment_id() -> str:
    """The experiment's id; ``STANDALONE`` by hand."""
    if not _is_trial():
        return STANDALONE
    from trial_runtime import session

    return session.current().file.experiment


def get_trial_id() -> str:
    """This trial's id, the ``trial_job_id`` of its tuner; ``STANDALONE`` by hand."""
    return str(get_sequence_id()) if _is_trial() else STANDALONE


def get_sequence_id() -> int:
    """This trial's running number; 0 by hand."""
    if not _is_trial():
        return 0
    import trial_runtime

    return trial_runtime.trial_id()


def _by_hand() -> Any:
    """The parameters in standalone mode: those of the file ``BEQUEATH_PARAMETERS``, or none."""
    global _params
    if _params is None:
        import trial_runtime

        _params = trial_runtime.get_parameters()
        if not _params:
            _log.warning("run by hand: there are no tuned parameters, the script's own count")
    return dict(_params) if isinstance(_params, dict) else _params


def _shown(metric: Any) -> str:
    try:
        return str(dump(metric))
    except TypeError:
        return repr(metric)


def _say(text: str) -> None:
    sys.stdout.write(f"[nni] {text}\n")
    sys.stdout.flush()
