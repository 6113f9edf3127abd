"""The functions of a trial. All may be called from any thread, and in any order."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import msgspec

from trial_runtime import session as _session

if TYPE_CHECKING:
    from trial_runtime.checkpoints import Checkpoints
    from trial_runtime.stores import SharedStore
from trial_runtime.failpoints import failpoint

#: Where weights go when a script is run by hand and names no path.
_BY_HAND_WEIGHTS = "weights"


def get_parameters() -> Any:
    """The parameters of this trial, as the tuner proposed them: usually a dict.

    Paths of weights in them are absolute and ready to use. Does not wait. Each call gives
    a copy of its own. By hand: what is in the JSON file that ``BEQUEATH_PARAMETERS`` names, or
    ``{}``. Under NNI's name, too: ``get_next_parameter``.
    """
    return msgspec.json.decode(_session.current().file.parameters)


get_next_parameter = get_parameters


def report_intermediate(value: Any) -> None:
    """Report a metric of a trial that goes on, for people to watch and assessors to judge.

    The tuner sees final results only. Does not wait, unless a thousand reports are under way.
    Under NNI's name, too: ``report_intermediate_result``.

    Args:
        value: a finite number, or a mapping with a finite number under ``default``.

    Raises:
        InvalidMetric: the value is something else, NaN or infinite.
        ReportRefused: more metrics than the experiment allows (``maxMetricsPerTrial``).
        AgentGone: the agent does not answer.
    """
    _session.current().report_intermediate(value)


report_intermediate_result = report_intermediate


def report_final(value: Any) -> None:
    """Report the result of this trial; returns when the agent has it.

    The tuner is given it when the trial has ended. A second final result is recorded and does
    not count. Under NNI's name, too: ``report_final_result``.

    Args:
        value: a finite number, or a mapping with a finite number under ``default``.

    Raises:
        InvalidMetric: the value is something else, NaN or infinite.
        AgentGone: the agent does not answer.
    """
    _session.current().report_final(value)


report_final_result = report_final


def save_weights(state: Any, path: str | os.PathLike[str] | None = None) -> str:
    """Publish weights (and training state) that children may inherit when this trial has ended.

    Tensors that equal the parent's are referred to and not written again. Returns when the
    disk has them and the agent knows their digest. May be called again; the newest counts.
    By hand and without a path: a folder below ``bequeath-by-hand``.

    Args:
        state: a module, or nested dicts and lists of tensors, modules, optimisers, numbers.
        path: where to; this trial's save path if not given.

    Returns:
        The folder they were published in.

    Raises:
        NoSavePath: no path is given, and the parameters have none.
        WeightsError: they cannot be stored, or the path may not be written to.
    """
    current = _session.current()
    from trial_runtime import weights

    file = current.file
    target = os.fspath(path) if path is not None else file.save_path
    if target is None and file.weights_root is None:
        target = os.path.join(file.folder, _BY_HAND_WEIGHTS)
    if target is None:
        from trial_runtime.api_errors import NoSavePath

        raise NoSavePath(
            "this trial has no save path",
            hint="let the tuner put 'save_path' into the parameters, or name a path",
        )
    # Versions of a store go by rules of their own: nobody's weights refer to a file of one.
    ours = file.restore_kind == "bequeath" and not file.from_store
    published = weights.save(
        state,
        target,
        parent=file.restore_path if ours else None,
        root=file.weights_root,
        writer=_writer(),
        parent_digest=(file.restore_digest or None) if ours else None,
    )
    if file.save_path is None or os.path.realpath(file.save_path) == published.path:
        current.published(published.digest, "bequeath", published.bytes_total)
        failpoint("trial.weights.announced")
    return published.path


def load_weights(
    into: Any = None, path: str | os.PathLike[str] | None = None, **options: Any
) -> Any:
    """Load weights: this trial's parent's, unless another path is given.

    The digest that the dispatcher announced is what must be found there; a file system that
    still shows an older state is waited for, within a bound.

    Args:
        into: a module, or nested dicts of tensors and modules, to copy into; without it the
            state itself is returned, as it was saved.
        path: where from; this trial's restore path if not given.
        **options: as in :func:`trial_runtime.weights.load`.

    Returns:
        With ``into`` a report of what was loaded and what was missing or had another shape,
        which is no error unless ``strict=True``. None if this trial has no parent.

    Raises:
        WeightsError: they are missing, torn, changed, or do not fit.
    """
    file = _session.current().file
    source = os.fspath(path) if path is not None else file.restore_path
    if source is None:
        return None
    from trial_runtime import weights

    if source == file.restore_path and file.restore_kind in ("bequeath", "files"):
        options.setdefault("digest", file.restore_digest or None)
        options.setdefault("stale_timeout_s", file.stale_timeout_s)
    stored = source == file.restore_path and file.from_store
    options.setdefault("root", file.stores if stored else file.weights_root)
    if file.read_roots:
        options.setdefault("read_roots", file.read_roots)
    return weights.load(source, into, **options)


def shared_store(name: str) -> SharedStore:
    """A shared store of weights: versions that trials publish while they run, and others pin.

    Stands at the version that the tuner has pinned for this trial, if any. Does not wait. By
    hand: a store of this process's own.

    Args:
        name: letters, digits, ``-._``; up to 64. The first version makes the store.

    Returns:
        See :class:`trial_runtime.stores.SharedStore`: ``load``, ``publish``.

    Raises:
        NoSharedStore: this experiment can have none: its trials keep their weights to themselves.
    """
    from trial_runtime.stores import SharedStore

    return SharedStore(name)


def should_stop() -> bool:
    """Whether this trial has been asked to stop: leave soon, save and report first if you like.

    Cheap enough for every step. A trial that never asks is ended by a signal instead.
    """
    return _session.current().stop_reason() is not None


def log(text: str) -> None:
    """Write a line with the time (UTC) to the trial's standard error."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    import sys

    sys.stderr.write(f"{now} {text}\n")
    sys.stderr.flush()


def save_artefact(name: str, content: str | bytes | os.PathLike[str]) -> str:
    """Keep a small file with this attempt: a picture, a report.

    Args:
        name: a relative path below the attempt's ``artefacts`` folder.
        content: bytes, or the path of a file to copy. A ``str`` is such a path: encode texts.

    Returns:
        Where it lies.

    Raises:
        ArtefactRefused: it is larger than 64 MB, or with it this attempt's are more than 1,000
            files or 256 MB, or the name leads out.
        PathThroughLink: a symbolic link is in the way.
        OSError: the file cannot be read, or the disk is full.
    """
    from trial_runtime import artefacts

    folder = os.path.join(os.path.realpath(_session.current().file.folder), "artefacts")
    return artefacts.keep(folder, name, content)


def devices() -> tuple[str, ...]:
    """The ids of the GPUs this trial may use, where its experiment counts them; else nothing.

    ``CUDA_VISIBLE_DEVICES`` names the same, so the first of them is ``cuda:0``, and so on.
    Programs without Python find them in ``BEQUEATH_DEVICES``.
    """
    return _session.current().file.devices


def trial_id() -> int:
    """This trial's number (NNI's ``parameter_id``); 0 by hand."""
    return _session.current().file.trial


def attempt() -> int:
    """The number of this attempt at the trial, from 1; 0 by hand."""
    return _session.current().file.attempt


def checkpoint_dir() -> str:
    """A folder of this trial that its later attempts find again: for resuming, not for children.

    It exists, lies below the weights root, and goes when the trial is over. What is in it is
    yours: nothing checks it. Programs without Python find it in ``BEQUEATH_CHECKPOINT_DIR``.
    """
    path = _checkpoint_folder()
    os.makedirs(path, exist_ok=True)
    return path


def save_checkpoint(state: Any) -> str:
    """Keep a state from which a later attempt of this trial can go on; children do not see it.

    Returns when the disk has it; readers see all of it or what was there before. The newest
    two are kept while the trial lasts.

    Args:
        state: as for :func:`save_weights`.

    Returns:
        The folder it lies in.

    Raises:
        AttemptSuperseded: a later attempt of this trial has begun; nothing was kept.
        WeightsError: it cannot be stored, or the disk is full.
    """
    return _checkpoints().save(state)


def load_checkpoint(into: Any = None, **options: Any) -> Any:
    """Load the newest whole checkpoint of this trial, of whichever attempt.

    Args:
        into: a module, or nested dicts of tensors and modules, to copy into; without it the
            state itself is returned, as it was saved.
        **options: as in :func:`trial_runtime.weights.load`.

    Returns:
        None if there is none, as in a first attempt. Else what :func:`load_weights` returns.

    Raises:
        WeightsError: what is there does not fit ``into``.
    """
    return _checkpoints().load(into, **options)


def seed() -> int:
    """A seed (below 2**32) that is this trial's own and the same in all of its attempts.

    Nothing is seeded by itself: hand it to ``random``, numpy or torch.
    """
    import hashlib

    file = _session.current().file
    text = f"{file.seed}:{file.trial}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=4).digest(), "big")


def _checkpoint_folder() -> str:
    file = _session.current().file
    above = os.path.dirname(file.folder) if file.attempt else file.folder
    return file.checkpoints or os.path.join(above, "checkpoint")


def _checkpoints() -> Checkpoints:
    from trial_runtime.checkpoints import Checkpoints

    return Checkpoints(_checkpoint_folder(), _session.current().file.attempt)


def _writer() -> str:
    file = _session.current().file
    return f"{file.trial}.{file.attempt}" if file.attempt else "by hand"
