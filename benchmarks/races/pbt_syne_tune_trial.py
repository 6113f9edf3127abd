"""A member as Syne Tune starts it: generations one after another, a checkpoint after each."""

from __future__ import annotations

import argparse
from pathlib import Path

from syne_tune import Reporter

from benchmarks.races import member


def main() -> None:
    """Train until it is stopped."""
    parser = argparse.ArgumentParser()
    for name in member.SPACE:
        parser.add_argument(f"--{name}", type=float)
    parser.add_argument("--st_checkpoint_dir", type=Path)
    options, _ = parser.parse_known_args()
    folder: Path = options.st_checkpoint_dir
    folder.mkdir(parents=True, exist_ok=True)
    count = folder / "generation"
    state, begun = (member.read(folder), int(count.read_text())) if count.exists() else (None, 0)
    report = Reporter()
    number = int(folder.parent.name)  # a trial's folder is named by its number
    generation = begun
    while True:
        generation += 1
        state, accuracy = member.generation(vars(options), state, number, generation)
        member.write(state, folder)
        new = folder.with_name("generation-new")  # beside it, and whole, as member.write has it
        new.write_text(str(generation))
        new.replace(count)
        report(accuracy=accuracy, generation=generation)


if __name__ == "__main__":
    main()
