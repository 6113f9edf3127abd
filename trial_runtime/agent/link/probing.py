"""The check before an agent joins: whether this host has the share that the head has.

The checks run beside the loop, since each waits for as long as the server is away. Once the agent
has joined it checks no more: from then on trials meet the share.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from typing import Final

from trial_runtime.agent.base.helper import Helper
from trial_runtime.agent.base.loop import Timers
from trial_runtime.agent.config import AgentConfig

#: Between a look that found trouble and the next one, in seconds.
AGAIN_S: Final = 5.0
#: For how long trouble may pass by itself before it is reported: a folder that an NFS client has
#: cached, a mount that is just coming.
PATIENCE_S: Final = 5.0
#: After which a look that has not come back is reported.
SLOW_S: Final = 20.0

_log = logging.getLogger("bequeath.agent")


def looks_at_root(config: AgentConfig) -> bool:
    """Whether the agent has to look at its weights root before it joins."""
    return bool(config.root_token or (config.domain and config.remote is None))


class RootProbe:
    """Looks until the weights root is as it should be. Owned by the agent's loop.

    Args:
        config: of the agent.
        helper: takes the looks.
        timers: of the agent's loop.
        tell: called in the loop with a fault to mend, and with an empty text in the end.
        on_token: called, from any thread, with the token of a share that the head cannot see.
        again_s: seconds between a look that found trouble and the next one.
        patience_s: for how long trouble may pass by itself before it is reported (seconds).
        slow_s: seconds after which a look that has not come back is reported.
    """

    def __init__(
        self,
        config: AgentConfig,
        helper: Helper,
        timers: Timers,
        tell: Callable[[str], None],
        on_token: Callable[[str], None] = lambda token: None,
        *,
        again_s: float = AGAIN_S,
        patience_s: float = PATIENCE_S,
        slow_s: float = SLOW_S,
    ) -> None:
        self._config = config
        self._helper = helper
        self._timers = timers
        self._tell = tell
        self._on_token = on_token
        self._again_s = again_s
        self._patience_s = min(patience_s, config.stale_timeout_s)
        self._slow_s = slow_s
        self._reported = ""

    def look(self) -> None:
        """Take a look and report its result; after trouble another look follows."""
        slow = self._timers.at(time.monotonic() + self._slow_s, self._is_slow)

        def done(trouble: str | None, error: Exception | None) -> None:
            slow.cancel()
            if error is not None:
                trouble = f"the weights root {self._config.weights_root}: {error}"
            self._say(trouble or "")
            if trouble:
                self._timers.at(time.monotonic() + self._again_s, self.look)

        self._helper.submit(self._trouble, done)

    def _trouble(self) -> str:
        from trial_runtime.weights.storage.patience import Patience
        from trial_runtime.weights.storage.share import lay_token, trouble_with

        config = self._config
        root, token = config.weights_root, config.root_token
        if not token:  # the first of its storage domain, as far as its head knows
            try:
                os.makedirs(root, exist_ok=True)
                token = lay_token(root)
            except OSError as fault:
                return f"the weights root {root} takes no files: {fault.strerror}"
            self._on_token(token)
        trouble = ""
        for _ in Patience(self._patience_s).looks(root):
            trouble = trouble_with(root, token, config.canonical_root)
            if not trouble:
                break
        return trouble

    def _is_slow(self) -> None:
        if self._reported:  # a fault is reported already, and may still be there
            return
        root = self._config.weights_root
        self._say(f"the weights root {root} does not answer on this host: its server may be away")

    def _say(self, trouble: str) -> None:
        if trouble and trouble != self._reported:
            _log.warning("not joining: %s", trouble)
        elif self._reported and not trouble:
            _log.info("the weights root is as it should be now")
        self._reported = trouble
        self._tell(trouble)
