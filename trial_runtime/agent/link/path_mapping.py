"""Paths of weights as this host has them, and as its head calls them.

The weights root, and the read roots, may be mounted at other places than on the head's
machine. The head's orders are translated on their way in, the texts for it on their way out;
in between, this host uses its own paths only.
"""

from __future__ import annotations

import dataclasses
import os
import re

from msgspec.structs import replace

from trial_runtime import facts
from trial_runtime.agent.config import AgentConfig


class PathMapping:
    """The two spellings of each root."""

    def __init__(self, config: AgentConfig) -> None:
        there = (config.canonical_root, *config.canonical_read_roots)
        here = (config.weights_root, *config.read_roots)
        # The deepest first: one root may lie in another one.
        self._all = sorted(_different(there, here), key=lambda pair: -len(pair[0]))
        self._names = {here: there for there, here in self._all}
        longest_first = sorted(self._names, key=len, reverse=True)
        # Whole names only, and all at once: a root here may have the path of another one there.
        self._named = re.compile(
            r"(?<![\w/.-])(" + "|".join(map(re.escape, longest_first)) + r")(?![\w-]|\.\w)"
        )

    def here(self, path: str) -> str:
        """A path that the head sent: below the root as it is here. Relative ones stay."""
        if not os.path.isabs(path):
            return path
        plain = os.path.normpath(path)
        for there, here in self._all:
            if plain == there or plain.startswith(there.rstrip("/") + "/"):
                return os.path.normpath(here + "/" + plain[len(there) :])
        return path

    def order(self, order: facts.StartAttempt) -> facts.StartAttempt:
        """An order to start, with the paths of this host."""
        if not self._all:
            return order
        save, restore = order.save_path, order.restore_path
        return dataclasses.replace(
            order,
            save_path=self.here(save) if save is not None else None,
            restore_path=self.here(restore) if restore is not None else None,
        )

    def for_head(self, text: str) -> str:
        """A text for the head, in which this host's roots are called as the head calls them."""
        if not self._names:
            return text
        return self._named.sub(lambda match: self._names[match[1]], text)


def _different(there: tuple[str, ...], here: tuple[str, ...]) -> list[tuple[str, str]]:
    pairs = [(os.path.normpath(a), os.path.normpath(b)) for a, b in zip(there, here) if a and b]
    return [(a, b) for a, b in pairs if a != b]


def on_another_host(
    config: AgentConfig,
    *,
    token: str,
    weights_root: str = "",
    read_roots: dict[str, str] | None = None,
) -> AgentConfig:
    """The configuration of an agent on a host that shares the weights root with the head's.

    Args:
        config: as it would be on the head's machine.
        token: of the head's root, by :func:`trial_runtime.weights.storage.share.lay_token`.
        weights_root: its mount point on that host; the same place, if empty.
        read_roots: paths on that host of the read roots that are not at the same place.
    """
    moved = read_roots or {}
    there = replace(
        config,
        canonical_read_roots=config.read_roots,
        weights_root=weights_root or config.weights_root,
        read_roots=tuple(moved.get(each, each) for each in config.read_roots),
    )
    if config.remote is not None or config.no_weights:
        return there  # there is no share, and what is below the root is the host's
    return replace(there, canonical_root=config.weights_root, root_token=token)
