"""The page for users who come from other services, written from the tables that the code follows."""

# ruff: noqa: E501 - rows of tables are one line each

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dispatcher.experiment.translated_keys import Does, Row
from dispatcher.foreign_files.google.table import AI_PLATFORM, VERTEX_AI
from dispatcher.foreign_files.katib.algorithms import ALGORITHMS
from dispatcher.foreign_files.katib.table import KATIB, OBJECT

_DOES = {
    Does.KEEP: "same",
    Does.SPECIAL: "same",
    Does.DROP: "not needed",
    Does.NOTHING: "no effect, with a warning",
    Does.REFUSE: "not",
}

TABLES: dict[str, Mapping[str, Row]] = {
    "Katib: an Experiment": KATIB,
    "Katib: the object of a trial": OBJECT,
    "AI Platform Training: a job": AI_PLATFORM,
    "Vertex AI: a HyperparameterTuningJob": VERTEX_AI,
}
"""All tables, by what a reader calls them."""

_HEAD = """\
# From Katib, AI Platform and Vertex AI

<!-- Generated from dispatcher/foreign_files by `make docs`; edits here are lost. -->

`bequeath run` takes files of Katib, AI Platform and Vertex AI as they are:

```
bequeath run experiment.yaml      # an Experiment of Katib, kubeflow.org/v1beta1
bequeath run config.yaml          # a job of AI Platform Training, or its trainingInput, with hyperparameters
bequeath run hptuning.json        # a HyperparameterTuningJob of Vertex AI; JSON or YAML
bequeath convert experiment.yaml  # the same under our keys, with the reason for each
```

- *The program runs, its image does not.* The command of the container is run in the folder of the file, with the Python and the
  libraries of this machine. A command that is only in an image (`/opt/train.py`) is refused: bring the program here.
- *Parameters and results go the ways that the program knows*: arguments and `${trialParameters.NAME}`; lines such as `accuracy=0.93`, files,
  and `hypertune` ([programs of others](programs-of-others.md)). Metrics that a program writes as summaries of TensorFlow are not read.
- *Keys of ours may stand beside theirs*, at the top of the file, and count: `trialCommand` in place of a container, `trialCodeDirectory`,
  `tuner`, `trialGpuNumber: 0`, `trialEnvironment` for what a cluster's secrets held, `trainingService` for other machines.
- *Nothing is left out silently.* A field that has no effect and would be missed is named when the experiment starts; what cannot be honoured is
  refused with file, line and column. `bequeath convert` lists all of it.

| here | |
|---|---|
| same | it does what it did, under our key |
| not needed | it has no effect, and none is missed |
| no effect, with a warning | it has no effect, and you read so |
| not | it is refused, with what to do |
"""

_ALGORITHMS = """\
## Algorithms

| Katib | here | settings | note |
|---|---|---|---|
"""

_AFTER_ALGORITHMS = """\

Settings in brackets have no counterpart, and a warning says so. `TPE`, `GP`, `CMA-ES` and `QMC` need `pip install 'bequeath[optuna]'`. AI Platform's and
Vertex AI's own search is closed; `TPE` stands in, and a warning says so.
"""


def page() -> str:
    """Return the text of ``docs/from-others.md``."""
    return "\n".join([_HEAD, *_fields(), _ALGORITHMS + "".join(_rows()) + _AFTER_ALGORITHMS])


def _fields() -> Iterator[str]:
    for title, table in TABLES.items():
        yield f"## {title}\n\n| field | here | our key | note |\n|---|---|---|---|"
        for path, row in table.items():
            if row.does is not Does.SECTION:
                yield _field(path, row)
        yield ""


def _field(path: str, row: Row) -> str:
    natives = ", ".join(f"`{each}`" for each in row.native.split(", ") if each)
    shown = f"any other of `{path.removesuffix('.*')}`" if path.endswith(".*") else f"`{path}`"
    return f"| {shown} | {_DOES[row.does]} | {natives} | {row.note} |"


def _rows() -> Iterator[str]:
    for name, each in ALGORITHMS.items():
        here = f"`{each.native}`" if each.native else "not"
        settings = [
            f"`{key}`" if setting.native else f"[`{key}`]" for key, setting in each.settings.items()
        ]
        yield f"| `{name}` | {here} | {', '.join(settings)} | {each.note} |\n"
