"""``bequeath plot``: pictures of an experiment, as PNG files, or their numbers as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dispatcher.cli.arguments import Experiment, Folder, Json, context_for
from dispatcher.cli.lazy_group import CommandEntry, Table
from dispatcher.cli.out_file import write_out
from dispatcher.terminal.console import note, print_json

if TYPE_CHECKING:
    from dispatcher.operations.operation import Operation

PLOT: Table = {
    "progress": CommandEntry("cli.plot:progress", "Every result, and the best so far, over time."),
    "parallel": CommandEntry("cli.plot:parallel", "Parameters against results, one line a trial."),
    "lineage": CommandEntry("cli.plot:lineage", "The inheritance tree."),
    "importance": CommandEntry("cli.plot:importance", "Which parameters results depend on."),
    "slice": CommandEntry("cli.plot:slices", "Results over each of some parameters."),
    "contour": CommandEntry("cli.plot:contour", "The mean result over two parameters."),
    "pareto": CommandEntry("cli.plot:pareto", "Several objectives, and the Pareto front."),
    "hypervolume": CommandEntry("cli.plot:hypervolume", "How far the front has come, over time."),
    "timeline": CommandEntry("cli.plot:timeline", "Which slot had which attempt, and when."),
    "slots": CommandEntry("cli.plot:slots", "Busy slots over time, and why no more were."),
}

Out = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", metavar="FILE", help="The file; EXPERIMENT-KIND.png here if not given."
    ),
]
Metric = Annotated[
    str,
    typer.Option(
        "--metric", metavar="NAME", help="A number in the final result; default: that compared."
    ),
]
Mode = Annotated[
    str,
    typer.Option(
        "--mode", metavar="MODE", help="maximize or minimize; as the experiment says if not given."
    ),
]
Seed = Annotated[
    int,
    typer.Option("--seed", metavar="NUMBER", min=0, help="Seed of the importance of parameters."),
]
Parameters = Annotated[
    list[str] | None,
    typer.Option(
        "--parameter", "-p", metavar="NAME", help="Only this; can be given several times."
    ),
]
Many = Annotated[
    int | None,
    typer.Option("-n", "--number", metavar="NUMBER", min=1, max=40, help="Parameters at most."),
]

Objectives = Annotated[
    list[str] | None,
    typer.Option(
        "--objective",
        metavar="NAME[:MODE]",
        help="A number in the result, as loss:minimize; can be given several times. The "
        "experiment's own if not given.",
    ),
]


def progress(experiment: Experiment = None, out: Out = None, folder: Folder = None) -> None:
    """Draw every result, and the best so far, over time."""
    draw("progress", experiment, out, folder)


def lineage(experiment: Experiment = None, out: Out = None, folder: Folder = None) -> None:
    """Draw the inheritance tree, generations from left to right."""
    draw("lineage", experiment, out, folder)


def parallel(
    experiment: Experiment = None,
    parameters: Parameters = None,
    many: Many = None,
    metric: Metric = "default",
    mode: Mode = "",
    seed: Seed = 0,
    out: Out = None,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Draw parameters against results: one line a trial, an axis a parameter.

    Of many parameters the most important ones are drawn, and the others are named.
    """
    choice = _chosen(parameters=parameters, many=many, metric=metric, mode=mode, seed=seed)
    _plot("parallel", experiment, out, folder, as_json, choice)


def importance(
    experiment: Experiment = None,
    metric: Metric = "default",
    mode: Mode = "",
    seed: Seed = 0,
    out: Out = None,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Draw which parameters results depend on, judged by permutation.

    A random forest learns results from parameters; a parameter is as important as its predictions
    get worse when the parameter is shuffled. With few trials, with parameters that rise and fall
    together, or where little is explained, the order may be chance: the picture says so. What
    children owe to their parent's result is shown apart.
    """
    choice = _chosen(metric=metric, mode=mode, seed=seed)
    _plot("importance", experiment, out, folder, as_json, choice)


def slices(
    experiment: Experiment = None,
    parameters: Parameters = None,
    many: Many = None,
    metric: Metric = "default",
    mode: Mode = "",
    seed: Seed = 0,
    out: Out = None,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Draw results over each of some parameters, with medians."""
    choice = _chosen(parameters=parameters, many=many, metric=metric, mode=mode, seed=seed)
    _plot("slice", experiment, out, folder, as_json, choice)


def contour(
    experiment: Experiment = None,
    x: Annotated[
        str, typer.Option("--x", metavar="NAME", help="A parameter; an important one if not given.")
    ] = "",
    y: Annotated[str, typer.Option("--y", metavar="NAME", help="Another one.")] = "",
    metric: Metric = "default",
    mode: Mode = "",
    seed: Seed = 0,
    out: Out = None,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Draw the mean result over two parameters, where trials are near."""
    choice = _chosen(x=x, y=y, metric=metric, mode=mode, seed=seed)
    _plot("contour", experiment, out, folder, as_json, choice)


def pareto(
    experiment: Experiment = None,
    objectives: Objectives = None,
    out: Out = None,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Draw several objectives against one another, and the trials that no other one beats."""
    _plot("pareto", experiment, out, folder, as_json, _chosen(objectives=objectives))


def hypervolume(
    experiment: Experiment = None,
    objectives: Objectives = None,
    reference: Annotated[
        list[str] | None,
        typer.Option(
            "--reference",
            metavar="NAME:NUMBER",
            help="Beginning of the volume; can be given several times. The bound of the objective, "
            "or the worst result, if not given.",
        ),
    ] = None,
    out: Out = None,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Draw how the hypervolume of the front grew: how far it has come, in one number.

    It is the space between the reference and the front, in the units of the objectives multiplied.
    """
    choice = _chosen(objectives=objectives, reference=reference)
    _plot("hypervolume", experiment, out, folder, as_json, choice)


def timeline(
    experiment: Experiment = None,
    worker: Annotated[
        str | None, typer.Option("--worker", metavar="NAME", help="Only the slots of this one.")
    ] = None,
    out: Out = None,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Draw which slot of which worker had which attempt, and when."""
    _plot("timeline", experiment, out, folder, as_json, _chosen(worker=worker))


def slots(
    experiment: Experiment = None,
    last: Annotated[
        float,
        typer.Option(
            "--last", metavar="SECONDS", min=10, max=604_800, help="Seconds up to the end, or now."
        ),
    ] = 3_600.0,
    out: Out = None,
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Draw how many slots were busy over time, and why no more were.

    The journal is gone through again, and each state has the answer of
    `bequeath why` at that moment.
    """
    _plot("slots", experiment, out, folder, as_json, _chosen(last=last))


def draw(
    kind: str,
    experiment: str | None,
    out: Path | None,
    folder: Path | None,
    **choice: Any,
) -> None:
    """Draw one kind of picture of one experiment.

    Args:
        kind: of the operation ``plot``.
        experiment: id, the beginning of one, a name or a folder; None: the one that runs, or
            the newest.
        out: the file to write; None: one named after experiment and kind.
        folder: the folder of experiments; None: the usual ones.
        **choice: further arguments of the operation.

    Raises:
        UserError: matplotlib is missing, there is nothing to draw, or the file cannot be
            written, or has the ending of another format.
    """
    from dispatcher.operations.operation import arguments_of, perform
    from dispatcher.operations.table import PLOT
    from dispatcher.plots.pictures import check_ending

    if out is not None:
        check_ending(out)
    context = context_for("plot", folder)
    wanted = arguments_of(PLOT, {"kind": kind, **choice})
    image = perform(PLOT, context, wanted, experiment=experiment)
    path = out or Path(f"{context.handle(experiment, PLOT.purpose).id}-{kind}.png")
    write_out(path, image)
    note(f"wrote {path}")


def _chosen(**choice: Any) -> dict[str, Any]:
    """Return what was chosen, without what was not."""
    return {name: value for name, value in choice.items() if value is not None}


def _plot(
    kind: str,
    experiment: str | None,
    out: Path | None,
    folder: Path | None,
    as_json: bool,
    choice: dict[str, Any],
) -> None:
    if not as_json:
        draw(kind, experiment, out, folder, **choice)
        return
    from dispatcher.operations.operation import arguments_of, perform
    from dispatcher.operations.table import operation

    row: Operation[Any, Any] = operation(f"plot {kind}")
    context = context_for("plot", folder)
    print_json(perform(row, context, arguments_of(row, choice), experiment=experiment))
