"""A tuner's side of shared stores of weights, which its trials publish versions of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PINS_KEY = "shared_stores"
"""The key under which parameters say which versions a trial reads: ``{"omega": 3}``."""


class StoreView:
    """One shared store, as its tuner sees it. Get it from :meth:`tuners.Tuner.shared_store`.

    It may be asked from any thread, also by requests that overlap.
    """

    def __init__(self, name: str, newest: Mapping[str, int]) -> None:
        self.name = name
        self._newest = newest

    def latest(self) -> int:
        """The number of the newest version; 0 before the first. Does not wait.

        A version that a trial has published is known before the trial's result is delivered. A
        tuner that is restored knows those of before, too.
        """
        return self._newest.get(self.name, 0)

    def pin(self, parameters: Mapping[str, Any], version: int | None = None) -> dict[str, Any]:
        """The parameters of a trial that reads one version, whatever is published meanwhile.

        Args:
            parameters: what ``generate_parameters`` would return otherwise; not changed.
            version: its number; the newest if not given. 0 pins nothing: the trial begins the
                store.

        >>> StoreView("omega", {"omega": 3}).pin({"lr": 0.1})
        {'lr': 0.1, 'shared_stores': {'omega': 3}}
        """
        number = self.latest() if version is None else version
        if not number:
            return dict(parameters)
        return {**parameters, PINS_KEY: {**parameters.get(PINS_KEY, {}), self.name: number}}
