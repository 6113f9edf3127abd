"""Records of removals and of disk use by weights, as users are shown them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dispatcher.weight_keeper.retention import Need


@dataclass(frozen=True, slots=True)
class Doomed:
    """Weights that go, or would."""

    trial: int
    path: str
    nbytes: int  # of its own files that really go

    def to_json(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"trial": self.trial, "path": self.path, "bytes": self.nbytes}


@dataclass(frozen=True, slots=True)
class GcPlan:
    """A sweep that was carried out (``done``), or a plan for one. ``shared`` are files that stay
    though their weights go, each with the kept paths that hold tensors in it."""

    done: bool
    doomed: tuple[Doomed, ...]
    files: int
    nbytes: int
    shared: dict[str, tuple[str, ...]]
    kept: dict[int, Need]
    doubtful: dict[int, str]  # trials whose weights stay and are in doubt, and why they are

    @property
    def doubts(self) -> str:
        """A sentence on weights in doubt, for people; empty if there are none."""
        return doubts(self.doubtful)

    def to_json(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "done": self.done,
            "weights": [one.to_json() for one in self.doomed],
            "files": self.files,
            "bytes": self.nbytes,
            "shared": {file: list(users) for file, users in self.shared.items()},
            "kept": {str(trial): need.value for trial, need in self.kept.items()},
            "doubtful": {str(trial): why for trial, why in self.doubtful.items()},
        }


def doubts(doubtful: Mapping[int, str]) -> str:
    """Return a sentence on weights in doubt, for people; empty if there are none."""
    if not doubtful:
        return ""
    trial, why = next(iter(doubtful.items()))
    others = len(doubtful) - 1
    whose = f"trial {trial}" + (f" and {others} more" if others else "")
    return (
        f"the weights of {whose} are not as they were committed ({why}). What they could need "
        "stays for as long as they do: all of the trials that were asked for before they ended"
    )


@dataclass(frozen=True, slots=True)
class TrialUse:
    """Disk use of one trial's weights. ``inherited_bytes`` lie in ancestors' files."""

    trial: int
    path: str
    own_bytes: int
    inherited_bytes: int
    files: int
    pinned: bool
    problem: str = ""  # why it could not be read

    def to_json(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "trial": self.trial,
            "path": self.path,
            "own_bytes": self.own_bytes,
            "inherited_bytes": self.inherited_bytes,
            "files": self.files,
            "pinned": self.pinned,
            "problem": self.problem,
        }


@dataclass(frozen=True, slots=True)
class DiskUse:
    """Disk use of an experiment's weights. Each file is counted once, with its owner."""

    root: str
    trials: tuple[TrialUse, ...]
    total_bytes: int
    removed_bytes: int  # what sweeps have freed so far

    def to_json(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "root": self.root,
            "trials": [use.to_json() for use in self.trials],
            "total_bytes": self.total_bytes,
            "removed_bytes": self.removed_bytes,
        }
