"""Making an attempt ready before its process starts: in the loop, or beside it.

Access to a share whose server is away waits for as long as it is. The loop must not, since the
head would miss its heartbeats: so where the weights root is shared, the helper's threads do all
that touches it. On a disk of this host it costs less to do it at once.
"""

from __future__ import annotations

from collections.abc import Callable

from trial_runtime.agent.attempt import Attempt, Unpreparable
from trial_runtime.agent.attempts.preparing import (
    located,
    make_room,
)
from trial_runtime.agent.base.helper import Helper
from trial_runtime.agent.config import AgentConfig
from trial_runtime.agent.remote_weights import RemoteWeights
from trial_runtime.agent.runners.workplace import make_checkpoints
from trial_runtime.errors import WeightsError
from trial_runtime.session_file import SessionFile

#: Called in the loop when an attempt may be launched, or with what keeps it from that.
Ready = Callable[[Attempt, "Exception | None"], None]


class Readying:
    """Makes attempts ready. Owned by the agent's loop."""

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
