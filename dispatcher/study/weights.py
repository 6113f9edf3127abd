"""Weights of the trials of a study, in the weight store of its experiment."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tuners.arguments import legal_arguments
from tuners.builtin import builtin_tuner

if TYPE_CHECKING:
    from dispatcher.core.model import Trial
    from trial_runtime.weights import Published


class WeightPaths(NamedTuple):
    """The paths of one trial: where its weights go, and where its parent's lie."""

    root: Path
    writer: str  # trial and attempt
    save_path: str | None = None
    restore_path: str | None = None
    restore_digest: str | None = None

    def save(self, state: Any) -> Published:
        """Publish weights at the trial's own path. Raises ``WeightsError``."""
        from trial_runtime import weights

        assert self.save_path is not None
        return weights.save(
            state,
            self.root / self.save_path,
            parent=None if self.restore_path is None else self.root / self.restore_path,
            root=str(self.root),
            writer=self.writer,
            parent_digest=self.restore_digest,
        )

    def load(self, into: Any, options: dict[str, Any]) -> Any:
        """Load the parent's weights. Raises ``WeightsError``."""
        from trial_runtime import weights

        assert self.restore_path is not None
        given = {"digest": self.restore_digest, "root": str(self.root), **options}
        return weights.load(self.root / self.restore_path, into, **given)


#: Tuners that promote trials of one rung to the next, and end where nobody can be promoted.
_PROMOTING = ("Hyperband", "BOHB")


def nobody_saved(trials: Iterable[Trial]) -> bool:
    """Whether no trial has saved weights, so that none can be a parent."""
    return all(trial.weights is None for trial in trials)


def without_parents(tuner: str) -> str:
    """Say what becomes of a search whose trials save no weights, and what to do.

    Args:
        tuner: its name.
    """
    end = (
        "ends at its first promotion" if tuner in _PROMOTING else "is no better than random search"
    )
    may_do_without = "inherit" in legal_arguments(builtin_tuner(tuner))
    off = ", or take tuner_args={'inherit': False}" if may_do_without else ""
    return f"without parents {tuner} {end}: call t.save_weights(state){off}"
