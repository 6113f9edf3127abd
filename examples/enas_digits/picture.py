"""What the search did, as a picture, and what it found, trained from scratch.

``python picture.py EXPERIMENT [progress.png]`` reads a finished experiment.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import digits
import numpy as np
import supernet

HERE = Path(__file__).resolve().parent

#: How long what was found is trained from scratch (the end of section 2.2), and the first ones that
#: were drawn beside it.
STEPS, RATE, BESIDE = (300, 1500), 0.05, 10


def by_phase(rows: list[dict[str, Any]]) -> dict[str, list[tuple[int, float, Any]]]:
    """Returns (id, accuracy, architectures) of the trials of each phase, in order of ids."""
    found: dict[str, list[tuple[int, float, Any]]] = {"weights": [], "controller": []}
    for row in sorted(rows, key=lambda each: each["trial"]):
        if row["value"] is not None:
            told = row["parameters"]
            found[told["phase"]].append((row["trial"], row["value"], told["architectures"]))
    return found


def from_scratch(architecture: Any, seed: int, steps: int) -> float:
    """Returns the test accuracy of an architecture trained by itself."""
    data, weights = digits.load(), supernet.initial(seed)
    rng = np.random.default_rng(seed)
    supernet.fit(weights, [architecture], data["train"], steps, RATE, rng)
    return supernet.share_right(weights, architecture, data["test"])


def draw(found: dict[str, list[tuple[int, float, Any]]], path: str) -> None:
    """Draws each phase's accuracies over ids."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4))
    for phase, colour in (("weights", "tab:gray"), ("controller", "tab:blue")):
        points = found[phase]
        label = f"phase: {phase}"
        axes.plot(*zip(*[p[:2] for p in points], strict=True), ".", color=colour, label=label)
    ids, values, _ = (list(each) for each in zip(*found["controller"], strict=True))
    for start in range(0, len(ids) - 23, 24):
        part = slice(start, start + 24)
        axes.plot(
            [ids[part][0], ids[part][-1]], [float(np.mean(values[part]))] * 2, color="tab:orange"
        )
    axes.set_xlabel("trial")
    axes.set_ylabel("validation accuracy, with shared weights")
    axes.legend(loc="lower right")
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> None:
    """Draws, and prints what was found."""
    from dispatcher import Experiment

    found = by_phase(read(Experiment.open(sys.argv[1])))
    out = sys.argv[2] if len(sys.argv) > 2 else str(HERE / "progress.png")
    draw(found, out)
    sys.stdout.write(f"drawn: {out}\n")
    best = max(found["controller"][-24:], key=lambda each: each[1])[2][0]
    sys.stdout.write(f"found: {best}\n")
    drawn = [each[2][0] for each in found["controller"][:BESIDE]]
    for steps in STEPS:
        told("found", steps, [from_scratch(best, seed, steps) for seed in range(5)])
        scores = [from_scratch(each, seed, steps) for seed, each in enumerate(drawn)]
        told(f"the first {BESIDE} drawn", steps, scores)


def told(name: str, steps: int, scores: list[float]) -> None:
    """Prints test accuracies."""
    text = f"{np.mean(scores):.3f} ± {np.std(scores):.3f} (best {max(scores):.3f})"
    sys.stdout.write(f"{name}, {steps} steps from scratch: test accuracy {text}\n")


def read(experiment: Any) -> list[dict[str, Any]]:
    """Returns the trials as rows."""
    return [
        {"trial": each.id, "value": each.value, "parameters": each.parameters}
        for each in experiment.trials()
    ]


if __name__ == "__main__":
    main()
