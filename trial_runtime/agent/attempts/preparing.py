"""Preparing an attempt before its process starts: its paths, parameters and session.

Access to a share whose server is away waits for as long as it is. The loop must not, since the
head would miss its heartbeats: so where the weights root is shared, the helper's threads do all
that touches it. On a disk of this host it costs less to do it at once.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from trial_runtime import facts
from trial_runtime.agent.attempt import Attempt, Unpreparable
from trial_runtime.agent.base.helper import Helper
from trial_runtime.agent.config import AgentConfig
from trial_runtime.agent.remote_weights import RemoteWeights, version_of, view_of
from trial_runtime.agent.runners.workplace import make_checkpoints
from trial_runtime.checkpoints import folder_of
from trial_runtime.errors import PathError, WeightsError
from trial_runtime.failpoints import failpoint
from trial_runtime.session_file import SESSION_VERSION, PinnedVersion, SessionFile
from trial_runtime.weights.storage import confined
from trial_runtime.weights.storage.faults import named
from trial_runtime.weights.storage.paths import STORES_NAME, resolve_in_root
from trial_runtime.weights.storage.patience import bound_for, revalidate_shared

_parameters: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_encode = msgspec.json.Encoder().encode


def session_for(config: AgentConfig, start: facts.StartAttempt, address: str) -> SessionFile:
    """The session of an attempt without its paths, see :func:`located`. Touches no disk.

    Args:
        config: of the agent.
        start: the head's order.
        address: of the agent's socket for trials.

    Raises:
        Unpreparable: it needs weights, of which there are none.
    """
    paths = (start.save_path, start.restore_path)
    if config.no_weights and (any(path is not None for path in paths) or start.versions):
        raise Unpreparable(config.no_weights)
    root = view_of(config, start.trial, start.attempt)
    spec = config.trial
    folder = f"{config.trials_folder}/{start.trial}/{start.attempt}"
    return SessionFile(
        SESSION_VERSION,
        address,
        f"t{start.trial}.{start.attempt}:{secrets.token_hex(16)}",
        start.trial,
        start.attempt,
        folder,
        start.parameters,
        config.seed,
        None,
        None,
        start.restore_digest,
        start.restore_kind,
        root,
        config.read_roots,
        spec.function or "",
        spec.code_directory,
        spec.max_metric_bytes,
        config.experiment,
        bound_for(config.stale_timeout_s, config.weights_root),
        folder_of(config.weights_root, config.experiment, start.trial),
        f"{folder}/work" if spec.own_folders else "",
        stores=stores_folder(config, root),
        versions=tuple(PinnedVersion(v.store, v.number, v.path, v.digest) for v in start.versions),
    )


def stores_folder(config: AgentConfig, weights_root: str) -> str:
    """The folder of the experiment's shared stores below a weights root.

    Empty for a head that knows of none. A view of a remote root belongs to one experiment, so its
    stores need no folder of their own for each.
    """
    if not config.shared_stores:
        return ""
    if config.remote is not None:
        return os.path.join(weights_root, STORES_NAME)
    return os.path.join(weights_root, STORES_NAME, config.experiment)


def located(config: AgentConfig, start: facts.StartAttempt, session: SessionFile) -> SessionFile:
    """A session with absolute paths, which are checked once more on this host.

    Waits for the server where the weights root is shared.

    Args:
        config: of the agent.
        start: the head's order, with paths relative to the weights root.
        session: as of :func:`session_for`.

    Raises:
        Unpreparable: a path leads out of the weights root.
    """
    if start.save_path is None and start.restore_path is None:
        return session
    save, restore = _paths(config, start, session.weights_root or config.weights_root)
    parameters = _with_paths(config, start.parameters, save, restore)
    return replace(session, parameters=parameters, save_path=save, restore_path=restore)


def _paths(
    config: AgentConfig, start: facts.StartAttempt, weights_root: str
) -> tuple[str | None, str | None]:
    root = os.path.realpath(weights_root)
    save = restore = None
    try:
        if start.save_path is not None:
            save = os.path.join(root, resolve_in_root(root, start.save_path))
        version = version_of(start)
        if version:
            restore = os.path.join(os.path.realpath(stores_folder(config, weights_root)), version)
        elif start.restore_path is not None:
            restore = os.path.join(
                root,
                resolve_in_root(root, start.restore_path, read_roots=config.read_roots),
            )
    except PathError as error:
        raise Unpreparable(str(error)) from error
    return save, restore


def _with_paths(config: AgentConfig, text: str, save: str | None, restore: str | None) -> str:
    """The parameters as the trial should see them, with paths that are valid on this host.

    A script that does not use our library opens the paths as they are.
    """
    parameters = _parameters.decode(text)
    if not isinstance(parameters, dict):
        return text
    if save is not None and config.save_key in parameters:
        parameters[config.save_key] = save
    if restore is not None and config.restore_key in parameters:
        parameters[config.restore_key] = restore
    return _encode(parameters).decode()


def session_path(config: AgentConfig, start: facts.StartAttempt) -> str:
    """The path of an attempt's session file while it runs.

    It is in the private run folder, so that a trial which prints nothing leaves no trace in the
    experiment's folder.
    """
    return f"{config.run_folder}/s{start.trial}.{start.attempt}.json"


def make_room(save_path: str, attempt: int) -> None:
    """Set aside the files of an earlier attempt at the save path; make the folder above it.

    Nothing is deleted: a user may want to look at it. Nothing is done through a link that
    somebody has put on the way since the path was resolved.

    Raises:
        Unpreparable: the disk or its permissions do not allow it, or a link is in the way.
    """
    above, name = os.path.split(save_path)
    try:
        if attempt > 1:
            revalidate_shared(save_path)  # the attempt before may have run on another host
        with confined.folder(above, make=True) as at:
            if not os.path.lexists(save_path):
                return
            if _is_empty_folder(save_path):
                if attempt > 1:  # one that was given up may hold it, about to write into it
                    os.rmdir(name, dir_fd=at)
                    os.mkdir(name, dir_fd=at)
                return
            aside = f"{name}.superseded.{attempt - 1}"
            number = 1
            while os.path.lexists(os.path.join(above, aside)):
                number += 1
                aside = f"{name}.superseded.{attempt - 1}-{number}"
            try:
                os.rename(name, aside, src_dir_fd=at, dst_dir_fd=at)
            except FileNotFoundError:
                # Done before, by a server that crashed before it could answer.
                if not os.path.lexists(os.path.join(above, aside)):
                    raise
            failpoint("agent.leftovers.set_aside")
    except OSError as error:
        fault = named(error, save_path)
        why = f"cannot prepare {save_path}: {error.strerror}" if fault is None else str(fault)
        raise Unpreparable(why) from error
    except PathError as error:
        raise Unpreparable(f"cannot prepare {save_path}: {error}") from error


def _is_empty_folder(path: str) -> bool:
    if os.path.islink(path) or not os.path.isdir(path):
        return False
    with os.scandir(path) as entries:
        return next(entries, None) is None


#: Called in the loop when an attempt may be launched, or with what keeps it from that.
Ready = Callable[[Attempt, "Exception | None"], None]


class Readying:
    """Makes attempts ready, in the loop or beside it. Owned by the agent's loop."""

    def __init__(self, config: AgentConfig, helper: Helper, remote: RemoteWeights | None) -> None:
        from trial_runtime.weights.storage.mounted import mount_of

        self._config = config
        self._helper = helper
        self._remote = remote
        mount = mount_of(config.weights_root) if remote is None else None
        self.beside = mount is not None and mount.shared

    def begin(self, attempt: Attempt, ready: Ready) -> None:
        """Make an attempt ready; ``ready`` may be called before this returns."""
        remote, session = self._remote, attempt.session
        if remote is not None:
            self._helper.submit(
                lambda: remote.prepare(attempt.start), lambda _made, error: ready(attempt, error)
            )
        elif self.beside:

            def done(session: SessionFile | None, error: Exception | None) -> None:
                attempt.busy = False
                if session is not None:
                    attempt.session = session
                    attempt.has_room = True
                ready(attempt, error)

            attempt.busy = True
            self._helper.submit(lambda: self._on_share(attempt), done)
        elif session.restore_kind == "files":
            self._helper.submit(
                lambda: verify_parent(session), lambda _none, error: ready(attempt, error)
            )
        else:
            ready(attempt, None)

    def _on_share(self, attempt: Attempt) -> SessionFile:
        session = located(self._config, attempt.start, attempt.session)
        verify_parent(session)
        if session.save_path is not None:
            make_room(session.save_path, attempt.number)
        if session.checkpoints is not None and self._config.trial.command is not None:
            make_checkpoints(session.checkpoints)
        return session


def verify_parent(session: SessionFile) -> None:
    """Verify plain files of a parent; weights in our format are verified as they are loaded."""
    if session.restore_kind == "files" and session.restore_path is not None:
        from trial_runtime.weights.read.plain import verify_tree

        try:
            verify_tree(
                session.restore_path,
                session.restore_digest or "",
                stale_timeout_s=session.stale_timeout_s,
            )
        except WeightsError as error:
            raise Unpreparable(f"the parent's weights: {error}") from error
