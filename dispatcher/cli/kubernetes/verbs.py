"""``bequeath kubernetes``: what is applied to a cluster, as documents."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import LiteralScalarString

from dispatcher.cli.arguments import ExperimentFile
from dispatcher.cli.lazy_group import CommandEntry, Table
from dispatcher.errors import ExperimentFileError
from dispatcher.terminal.console import note, pass_on

if TYPE_CHECKING:
    from dispatcher.cli.kubernetes.manifest import HeadPlan
    from dispatcher.platforms.kubernetes.kind import AllocationKind

KUBERNETES: Table = {
    "rights": CommandEntry(
        "cli.kubernetes.verbs:rights", "Print the Role that a head needs, and who has it."
    ),
    "manifest": CommandEntry(
        "cli.kubernetes.verbs:manifest", "Print the objects by which a head runs in a cluster."
    ),
}


def rights(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="SUBJECT",
            help="User, or NAMESPACE:NAME of a service account, that gets the rights.",
            show_default=False,
        ),
    ],
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace", "-n", metavar="NAMESPACE", help="Namespace in which trials run."
        ),
    ] = "default",
    platform: Annotated[
        str,
        typer.Option(
            "--platform",
            metavar="PLATFORM",
            help="Platform whose trials run there: this one, or one for other kinds of objects of "
            "the same API.",
        ),
    ] = "kubernetes",
) -> None:
    """Print the Role that a head needs, and its binding, for `kubectl apply -f -`.

    Nothing is asked of any cluster.
    """
    from dispatcher.platforms.kubernetes.rights import role_of

    kinds = _kinds_of(platform)
    try:
        bodies = list(role_of(namespace, subject, kinds))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="'SUBJECT'") from None
    _print(bodies)


def _kinds_of(platform: str) -> Sequence[AllocationKind]:
    """The kinds of objects that trials of a platform may run in."""
    from dispatcher.experiment.plugged import Unusable, platform_named
    from dispatcher.platforms.kubernetes.section import KubernetesService

    named = platform_named(platform)
    if isinstance(named, Unusable):
        raise typer.BadParameter(f"{named.text}; {named.hint}", param_hint="'--platform'")
    if not issubclass(named.section, KubernetesService):
        text = f"trials of {platform!r} run in no pods that a head asks for"
        raise typer.BadParameter(text, param_hint="'--platform'")
    return named.section.allocation_kinds()


def manifest(
    file: ExperimentFile,
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            metavar="NAME",
            help="Name of all objects; made of the experiment's name if not given.",
            show_default=False,
        ),
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace",
            "-n",
            metavar="NAMESPACE",
            help="Namespace of the head; that of the trials if not given.",
            show_default=False,
        ),
    ] = None,
    image: Annotated[
        str | None,
        typer.Option(
            "--image",
            metavar="IMAGE",
            help="Image of the head, with all of bequeath and the tuner's code; that of the trials "
            "if not given.",
            show_default=False,
        ),
    ] = None,
    storage_class: Annotated[
        str | None,
        typer.Option(
            "--storage-class",
            metavar="CLASS",
            help="Storage of the experiment's folder, of disks and not of NFS; the cluster's own "
            "choice if not given.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Print the objects by which a head runs in the cluster, for `kubectl apply -f -`.

    A Deployment of one pod with a volume for the experiment's folder, its account and rights, a
    Service by which agents find it, and the experiment file. A head that dies goes on when it is
    started anew. Nothing is asked of any cluster; docs/kubernetes.md tells the way.
    """
    from dispatcher.cli.kubernetes.manifest import objects_of

    plan = _plan(file, name, namespace, image, storage_class)
    _print(objects_of(plan))
    if plan.variables:
        values = " ".join(f"--from-literal={each}=…" for each in plan.variables)
        note("the pod waits for a Secret with the values that the file refers to:")
        note(f"kubectl -n {plan.namespace} create secret generic {plan.secret} {values}")


def _plan(
    file: Path, name: str | None, namespace: str | None, image: str | None, storage: str | None
) -> HeadPlan:
    from dispatcher.cli.kubernetes import manifest as objects
    from dispatcher.experiment import load_experiment
    from dispatcher.experiment.problems import ExperimentFileErrors
    from dispatcher.experiment.source import Place
    from dispatcher.experiment.yaml_text import read_source_of

    config = load_experiment(file, elsewhere=True)
    text = file.expanduser().read_text("utf-8-sig")
    source = read_source_of(text, file, str(file), lax=True)
    name = name or objects.usual_name(config.experiment_name)
    if not objects.is_name(name):
        wanted = "must be at most 48 lower-case letters, digits and '-', a letter first"
        raise typer.BadParameter(f"{wanted}, not {name!r}", param_hint="'--name'")
    beside = dict(_beside(file, config.search_space_file))
    key = objects.file_key(file.name, beside)
    plan = objects.HeadPlan(
        source,
        config,
        key,
        {key: text, **beside},
        name,
        namespace or objects.namespace_of(config),
        image,
        storage,
    )
    errors: list[tuple[Place, int, ExperimentFileError]] = []
    for problem in objects.problems_of(plan):
        at = objects.written(source.value, problem.path)
        text = f"'{problem.path[-1]}' {problem.text}" if problem.path else f"it {problem.text}"
        error = ExperimentFileError(text, hint=problem.hint, where=source.where(at))
        errors.append((source.place(at) or (0, 0), len(errors), error))
    if errors:
        raise ExperimentFileErrors([error for _, _, error in sorted(errors)])
    return plan


def _beside(file: Path, space: Path | None) -> Iterator[tuple[str, str]]:
    """The search space, if it lies beside the experiment file."""
    if space is not None and space.parent == file.expanduser().absolute().parent:
        yield space.name, space.read_text("utf-8-sig")


def _print(bodies: Iterable[dict[str, Any]]) -> None:
    yaml = YAML()
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.representer.ignore_aliases = lambda data: True
    written = io.StringIO()
    yaml.dump_all([_with_blocks(each) for each in bodies], written)
    pass_on(written.getvalue())


def _with_blocks(value: Any) -> Any:
    """A value whose texts of several lines are printed as such."""
    if isinstance(value, dict):
        return {key: _with_blocks(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_blocks(each) for each in value]
    return LiteralScalarString(value) if isinstance(value, str) and "\n" in value else value
