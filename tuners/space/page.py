"""The page on search spaces, whose tables come from the types themselves."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator

from tuners.space import parameters
from tuners.space.forms import FORMS
from tuners.space.model import BLOCKS, MOST_BLOCKS, OWN_INTEGERS
from tuners.space.reading import dimension_of
from tuners.space.writing import as_json

#: Calls whose JSON differs with their arguments, beside the examples of the forms.
_MORE = (
    "int(16, 128, 16)",
    "int(1, 1000, log=True)",
    "choice({'sgd': {'momentum': uniform(0, 1)}, 'adam': {}})",
)

_BEGINNING = """\
# Search spaces

<!-- Generated from tuners/space by `make docs`; edits here are lost. -->

A search space names the parameters of a trial and says which values each may have. One parameter
has three spellings with one meaning; they may stand side by side.

In an experiment file, in short:

```yaml
searchSpace:
  lr: loguniform(1e-4, 1e-1)
  layers: int(1, 8)
  activation: choice(relu, gelu)
```

In an experiment file, in NNI's form. Files of NNI run as they are:

```yaml
searchSpace:
  lr: {_type: loguniform, _value: [0.0001, 0.1]}
  layers: {_type: randint, _value: [1, 9]}      # below 9
  activation: {_type: choice, _value: [relu, gelu]}
```

In Python:

```python
import bequeath as bq

search_space = {
    "lr": bq.loguniform(1e-4, 1e-1),
    "layers": bq.int(1, 8),
    "activation": bq.choice("relu", "gelu"),
}
```

`Experiment(search_space=search_space, …)` takes it, and so does `update_search_space` of a built-in
tuner. A tuner of your own gets NNI's form, whatever the file has. A file of its own,
`searchSpaceFile`, has the same spellings, in YAML or JSON.

## All kinds of parameters

| call | values |
|---|---|
"""

_FORMS_BEGIN = """
Arguments may be named: `uniform(low=0, high=1)`. Values of arguments are plain numbers and texts;
nothing is computed. In a file a single word needs no quotes inside a call: `choice(relu, gelu)`.
Within `{}` and `[]` of YAML a comma ends a text, so that a call needs quotes there:
`{lr: 'uniform(0, 1)'}`.

## The same in NNI's form

| short form | NNI's form |
|---|---|
"""

_END = """
{own} are types of ours: NNI has no integers with steps or logarithms. Their upper bound is never
reached, as that of `randint`. `{blocks}` is a type of ours, too ([lists of
blocks](#lists-of-blocks)). A tuner that is written for NNI may not know them. All other types
are NNI's ([what differs between its releases](from-nni.md)).

## Parameters of one option only

A parameter that makes sense beside one option of a choice stands below that option. Trials with
another option do not have it.

```yaml
searchSpace:
  optimizer:
    _type: choice
    _value:
      sgd:
        momentum: uniform(0, 1)
        nesterov: choice(true, false)
      adam:
        beta: uniform(0.8, 0.999)
      lion:
```

A trial gets `{{"optimizer": {{"_name": "sgd", "momentum": 0.3, "nesterov": true}}}}`. Options may
be nested to any depth. In one line, with quotes because of the colons:

```yaml
searchSpace:
  optimizer: "choice({{'sgd': {{'momentum': uniform(0, 1)}}, 'adam': {{}}}})"
```

In Python:

```python
optimizer = bq.choice({{"sgd": {{"momentum": bq.uniform(0, 1)}}, "adam": {{}}}})
```

NNI's form is a list, in which `_name` is the name of an option:

```yaml
searchSpace:
  optimizer:
    _type: choice
    _value:
      - _name: sgd
        momentum: uniform(0, 1)
      - _name: adam
```

## Lists of blocks

A list of blocks is an architecture: its length is searched, and so is each block. A block has the
parameters of a small space:

```yaml
searchSpace:
  lr: loguniform(1e-4, 1e-1)
  cells: "blocks(1, 8, {{op: choice(conv3, conv5, pool), width: int(8, 64)}})"
```

In NNI's form, where the small space may be written in any spelling:

```yaml
searchSpace:
  lr: loguniform(1e-4, 1e-1)
  cells:
    _type: blocks
    _value:
      - 1
      - 8
      - op: choice(conv3, conv5, pool)
        width: int(8, 64)
```

A trial gets `{{"cells": [{{"op": "conv3", "width": 32}}, {{"op": "pool", "width": 8}}], …}}`. In
Python, with evolution over 60 networks:

```python
cells = bq.blocks(1, 8, {{"op": bq.choice("conv3", "conv5", "pool"), "width": bq.int(8, 64)}})
study = bq.Study(
    {{"cells": cells, "lr": bq.loguniform(1e-4, 1e-1)}},
    tuner="RegularizedEvolution",
    tuner_args={{"population_size": 12, "sample_size": 4, "inherit": False}},
)


def trial(t):
    widths = [cell["width"] for cell in t.parameters["cells"] if cell["op"] != "pool"]
    return min(sum(widths), 128) - 4 * len(widths)  # in place of a training


study.optimize(trial, n_trials=60)
print(study.best().parameters["cells"])
```

A block may be one value: `blocks(1, 4, int(16, 256))` is a list of widths. It may be a choice whose
options have parameters of their own, and a list may stand in a block:

```yaml
searchSpace:
  widths: blocks(1, 4, int(16, 256, 16))
  layers: "blocks(2, 6, choice({{conv: {{kernel: choice(3, 5)}}, pool: {{}}}}))"
  stages: "blocks(1, 3, {{width: int(8, 64), ops: blocks(1, 4, choice(conv, pool))}})"
  _constraints:
    - len(layers) + len(widths) <= 8
    - "'pool' in layers"
    - max(widths) < 256
```

- A random draw takes each length as often as any other, and draws each block by itself.
- A mutation of evolution, and a move of PBT, is one change: a block more, a block less, one
  parameter of one block, or two neighbours swapped. Each is as likely as the others.
- Crossover takes a list from one parent.
- A condition has `len` of a list. A list of options is compared by their names.
- `GridSearch` takes a list with 10,000 combinations or fewer. `BOHB`, `SPOS` and the samplers of
  Optuna refuse a list.
- `t.suggest_blocks("cells", 1, 8, {{…}})` suggests a list while a trial runs. The study's tuner is
  `Random`, unless the study has a search space.
- One parameter has {most:,} blocks at most. Plots show how many there are.

A child with other blocks than its parent gets the parent's weights as they are. The trial decides
which of them fit. `MorphingEvolution` has a form of its own, in which each block has a number and
each change says what becomes of the weights ([tuners](tuners.md)).

## Constraints

`_constraints` lists conditions that each trial meets:

```yaml
searchSpace:
  layers: int(1, 8)
  width: int(64, 1024, 64)
  optimizer: "choice({{'sgd': {{'momentum': uniform(0, 1)}}, 'adam': {{}}}})"
  _constraints:
    - layers * width <= 4096
    - optimizer != 'sgd' or layers < 4
    - optimizer.momentum <= 0.9 or width == 64
```

In Python:

```python
space = bq.space(
    {{"layers": bq.int(1, 8), "width": bq.int(64, 1024, 64)}},
    constraints=["layers * width <= 4096"],
)
```

- A condition has names of parameters, numbers, quoted texts, lists, `+ - * / // % **`,
  comparisons, `in`, `and`, `or`, `not`, `len`, `abs`, `min` and `max`.
- A choice with names is compared by the name. `optimizer.momentum` is a parameter below it.
- A condition about a parameter that a trial does not have holds.
- A condition that cannot be computed, such as a division by zero, does not hold.

A built-in tuner proposes again until all conditions hold, within bounds. A random draw is tried
5,000 times, and `bequeath validate` refuses conditions that none of these meets. A mutation, or a
move of PBT, is tried 100 times and then replaced by a random draw. A sampler of Optuna is asked 20
times; it sees a proposal that misses a condition as a failed trial. SPOS trains all paths, and
evaluates those that meet the conditions.

A tuner of your own meets the conditions where it draws by `tuners.space`. Any other one gets the
key `_constraints` and is free in what it does with it. Trials that you submit by hand are not
judged.

## Mistakes

`bequeath validate` names each mistake by file, line and column, with what to write instead:

| written | message |
|---|---|
{mistakes}
"""

#: Wrong short forms that the page shows with what a person reads.
_MISTAKES = (
    "logunifrom(1e-4, 1e-1)",
    "loguniform(0, 1)",
    "uniform(1, 0)",
    "uniform(0)",
    "int(1, 8, stp=2)",
    "int(1, 64, 2, log=true)",
    "choice(1, uniform(0, 1))",
    "uniform(0, 2 ** 3)",
    "blocks(1, 8, {op: [conv, pool]})",
    "blocks(8, 1, int(8, 64))",
)


def page() -> str:
    """Return the text of ``docs/search-spaces.md``."""
    own = " and ".join(f"`{name}`" for name in OWN_INTEGERS)
    calls = "\n".join(_calls())
    return (
        f"{_BEGINNING}{calls}\n{_FORMS_BEGIN}"
        + "\n".join(_in_json())
        + "\n"
        + _END.format(own=own, blocks=BLOCKS, most=MOST_BLOCKS, mistakes="\n".join(_mistakes()))
    )


def _calls() -> Iterator[str]:
    for name, form in FORMS.items():
        text = inspect.cleandoc(getattr(parameters, name).__doc__).partition("\n\n")[0]
        yield f"| `{form.signature}` | {' '.join(text.split())} |"


def _in_json() -> Iterator[str]:
    examples = [form.example for form in FORMS.values()]
    for example in (*examples, *_MORE):
        written = json.dumps(as_json({"x": example})["x"]).replace('"', "")
        yield f"| `{example}` | `{written}` |"


def _mistakes() -> Iterator[str]:
    for text in _MISTAKES:
        try:
            dimension_of(text)
        except parameters.SpaceError as error:
            message = error.message.removeprefix(f"is {text!r}, ")
            yield f"| `{text}` | {message}; {error.hint} |"
