"""The tuner's side of shared stores of weights, to which its trials publish versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

PINS_KEY = "shared_stores"
"""The key, in the parameters, of the versions that a trial reads: ``{"omega": 3}``."""


class StoreView:
    """One shared store, as its tuner sees it. Get it from :meth:`tuners.Tuner.shared_store`.

    It may be asked from any thread, also by requests that overlap.
    """

    def __init__(
        self,
        name: str,
        newest: Mapping[str, int],
        hold: Callable[[str, tuple[int, ...]], None] | None = None,
    ) -> None:
        self.name = name
        self._newest = newest
        self._hold = hold

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

    def hold(self, *versions: int) -> None:
        """Keep these versions for trials to come, until the next call, which names all again.

        Old versions are removed once nobody needs them (``sharedStores`` in the experiment file). A
        request may pin, until it returns, any version that was the newest since the request began;
        a tuner that pins one version in several requests holds it in the first of them. Call it in
        ``generate_parameters``; it does not wait. A restored tuner holds what it held.

        Args:
            versions: their numbers; none lets go of all.
        """
        if self._hold is not None:
            self._hold(self.name, tuple(sorted({number for number in versions if number})))

    def restore_path(self, version: int | None = None) -> str:
        """The ``restore_path`` of a trial that starts from a version.

        ``load_weights`` loads it then as it loads weights of a parent. That pins the version, too.

        Args:
            version: its number; the newest if not given.

        Raises:
            ValueError: there is none yet.

        >>> StoreView("omega", {"omega": 3}).restore_path()
        '.stores/omega/3'
        """
        number = self.latest() if version is None else version
        if number < 1:
            raise ValueError(f"the shared store {self.name!r} has no version yet to start from")
        return f".stores/{self.name}/{number}"
