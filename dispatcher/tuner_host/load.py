"""Find the tuner's class and build the tuner, or explain precisely why that is impossible."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from dispatcher.errors import TunerCodeError
from dispatcher.tuner_host.adapter import PLAIN, HostServices, TunerAdapter, adapter_of
from dispatcher.tuner_host.config import AssessorSpec, TunerHostConfig
from dispatcher.tuner_host.signatures import TunerCalls
from dispatcher.tuner_host.tracebacks import describe
from dispatcher.tuner_host.user_folder import UserFolder
from trial_runtime.nesting import importing
from tuners.arguments import check_class_args, spelled
from tuners.base import Tuner
from tuners.builtin import builtin_assessor, builtin_tuner, make_assessor, make_builtin
from tuners.errors import TunerArgumentError


def build(config: TunerHostConfig, services: HostServices | None = None) -> TunerCalls:
    """Import the class and call its constructor, in this thread.

    Args:
        config: names the class and its arguments.
        services: of the host, for tuners that need an adapter; None: nobody listens to them.

    Raises:
        TunerCodeError: the class is missing, or its module or constructor raised; the text
            holds the author's part of the traceback.
    """
    adapter = adapter_of(config)
    if config.builtin:
        tuner = _construct(config.builtin, lambda: make_builtin(config.builtin, _args(config)))
    else:
        owner = _find_class(config, adapter)
        tuner = _construct(config.class_name, lambda: _call(owner, config.class_args))
    advisor = adapter.advisor(tuner, services or HostServices())
    calls = TunerCalls(tuner if advisor is None else advisor, adapter, advisor)
    missing = calls.missing()
    if missing is not None:
        raise TunerCodeError(
            f"the tuner class {type(tuner).__name__} has no method {missing}",
            hint="derive it from tuners.Tuner, or write generate_parameters and "
            "receive_trial_result",
        )
    return calls


def build_assessor(
    spec: AssessorSpec, optimize_mode: str = "", adapter: TunerAdapter = PLAIN
) -> Any:
    """Import and construct the assessor as :func:`build` does the tuner.

    Args:
        spec: names its class and arguments.
        optimize_mode: the experiment's, for a built-in one whose arguments name none.
        adapter: the tuner's.

    Raises:
        TunerCodeError: as :func:`build`.
    """
    if spec.builtin:
        return _construct(spec.builtin, lambda: _assessor_by_name(spec, optimize_mode))
    owner = _find_class(spec, adapter)
    assessor = _construct(spec.class_name, lambda: _call(owner, spec.class_args))
    if not callable(getattr(assessor, "assess_trial", None)):
        raise TunerCodeError(
            f"the assessor class {type(assessor).__name__} has no method assess_trial",
            hint="derive it from tuners.assessor.Assessor",
        )
    return assessor


def _assessor_by_name(spec: AssessorSpec, optimize_mode: str) -> Any:
    owner = builtin_assessor(spec.builtin)
    args = _with_defaults(owner, spec.class_args, {"optimize_mode": optimize_mode})
    return make_assessor(spec.builtin, args)


def _args(config: TunerHostConfig) -> dict[str, Any]:
    """Arguments of a built-in tuner; what the experiment says beside them is the default."""
    try:
        owner = builtin_tuner(config.builtin)
    except TunerArgumentError:
        return dict(config.class_args)  # an unknown name: make_builtin raises
    return _with_defaults(
        owner,
        config.class_args,
        {
            "seed": config.seed,
            "optimize_mode": config.optimize_mode,
            "objectives": config.objectives or None,
        },
    )


def _with_defaults(
    owner: type, class_args: dict[str, Any], defaults: dict[str, Any]
) -> dict[str, Any]:
    """The arguments, with the defaults that are known and that the class takes."""
    args = spelled(owner, class_args)
    taken = inspect.signature(owner).parameters
    for name, value in defaults.items():
        if value not in (None, "") and name in taken:
            args.setdefault(name, value)
    return args


def _find_class(config: TunerHostConfig | AssessorSpec, adapter: TunerAdapter) -> type:
    folder = Path(config.file).parent if config.file else Path(config.code_directory)
    module_name, name = _split(config.class_name)
    place = config.file or module_name
    if not folder.is_dir():
        raise TunerCodeError(f"the tuner's code directory {folder} is not there")
    if config.file and not Path(config.file).is_file():
        raise TunerCodeError(f"the tuner's file {config.file} is not there")
    user_folder = UserFolder.at(folder)
    try:
        with importing(place):
            if config.file:
                module = user_folder.load_file(Path(config.file).resolve())
            else:
                module = user_folder.load(module_name)
    except ModuleNotFoundError as error:
        if not config.file and _is_itself_missing(error, user_folder.known_as(module_name)):
            raise _no_module(module_name, folder) from None
        raise TunerCodeError(f"importing {place} failed\n{describe(error)}") from None
    except BaseException as error:  # noqa: BLE001 - author's code, SystemExit included
        raise TunerCodeError(f"importing {place} failed\n{describe(error)}") from None
    return _class_in(module, name, place)


def _is_itself_missing(error: ModuleNotFoundError, known: str) -> bool:
    """Whether it is the named module that is missing, not one that it imports."""
    return error.name is not None and f"{known}.".startswith(f"{error.name}.")


def _no_module(name: str, folder: Path) -> TunerCodeError:
    near = difflib.get_close_matches(name, [file.stem for file in folder.glob("*.py")], n=1)
    guess = f"did you mean {near[0]!r}? " if near else ""
    return TunerCodeError(
        f"there is no module {name!r} in {folder}",
        hint=f"{guess}className is 'module:Class', looked for in codeDirectory",
    )


def _class_in(module: ModuleType, name: str, place: str) -> type:
    member: Any = module
    for part in name.split("."):
        member = getattr(member, part, None)
    if isinstance(member, type):
        return member
    classes = [key for key, value in vars(module).items() if isinstance(value, type)]
    near = difflib.get_close_matches(name, classes, n=1)
    fault = (
        f"has no class {name}" if member is None else f"has {name}, which is no class: {member!r}"
    )
    raise TunerCodeError(
        f"{place} {fault}",
        hint=f"did you mean {near[0]!r}?" if near else f"it has: {', '.join(classes) or 'none'}",
    )


def _call(owner: type, args: dict[str, Any]) -> Any:
    try:
        check_class_args(owner, args)
    except (TypeError, ValueError) as error:
        if isinstance(error, TunerArgumentError):
            raise
    return owner(**args)


def _construct(name: str, make: Callable[[], Any]) -> Any:
    try:
        return make()
    except TunerArgumentError as error:
        raise TunerCodeError(error.message, hint=error.hint) from None
    except BaseException as error:  # noqa: BLE001 - author's code, SystemExit included
        raise TunerCodeError(f"the tuner {name} cannot be built\n{describe(error)}") from None


def _split(class_name: str) -> tuple[str, str]:
    """Split ``module:Class``, ``module.Class`` or a bare class."""
    module, colon, name = class_name.rpartition(":")
    if not colon:
        module, _, name = class_name.rpartition(".")
    return module, name


def check_search_space(tuner: Any, search_space: Any) -> None:
    """Ask a tuner whether it can search that space, if it is derived from our base class.

    Raises:
        TunerCodeError: it cannot; the text gives the tuner's reason.
    """
    if not isinstance(tuner, Tuner):
        return
    try:
        refusal = tuner.handles(search_space)
    except BaseException as error:  # noqa: BLE001 - author's code, SystemExit included
        raise _not_taken(error) from None
    if refusal:
        raise TunerCodeError(f"{type(tuner).__name__} cannot search this space: {refusal}")


def give_search_space(calls: TunerCalls, search_space: Any) -> None:
    """Give a tuner the search space.

    Raises:
        TunerCodeError: its code raised; the text has the traceback.
    """
    try:
        calls.update_search_space(search_space)
    except BaseException as error:  # noqa: BLE001 - author's code, SystemExit included
        raise _not_taken(error) from None


def _not_taken(error: BaseException) -> TunerCodeError:
    return TunerCodeError(f"the tuner does not take the search space\n{describe(error)}")


def install_gate(
    tuner: Any, gate: object, seed: int | None, stores: Mapping[str, int] | None = None
) -> None:
    """Give a tuner derived from our base class its gate, store versions and seed.

    Args:
        tuner: any tuner; others are left alone.
        gate: :class:`~dispatcher.tuner_host.gate.Gate`, which ``wait_for`` calls.
        seed: the experiment's; None, or one of the tuner's own, leaves the tuner's.
        stores: the newest known version of each shared store; changes as versions come.
    """
    if not isinstance(tuner, Tuner):
        return
    tuner._bequeath_gate = gate  # type: ignore[assignment]
    tuner._bequeath_stores = stores
    if seed is not None and "seed" not in vars(tuner):
        tuner.seed = seed
