"""Groups of commands that are listed without being imported: ``--help`` answers at once."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

#: Columns of help texts, where the terminal has as many.
HELP_WIDTH = 100


class CommandEntry(NamedTuple):
    """A command in its table.

    Attributes:
        home: ``module:function``, or ``module:TABLE`` for a group of commands, with the module's
            name below ``dispatcher``.
        help: the line that lists it.
        panel: the heading of that line.
        arrange: the home of a function that turns the typed arguments into those to parse; empty:
            they are the same.
        lenient: whether it takes options that it does not know.
    """

    home: str
    help: str
    panel: str = "Commands"
    arrange: str = ""
    lenient: bool = False


Table = Mapping[str, CommandEntry]


def group_of(name: str, help_text: str, table: Table) -> TyperGroup:
    """Make a group out of a table; no command of the table is imported yet.

    Args:
        name: the group's name on the command line.
        help_text: its help page.
        table: its commands, by name.
    """
    return _Lazy(
        name=name,
        help=help_text,
        table=table,
        no_args_is_help=True,
        rich_markup_mode=None,
        context_settings={"max_content_width": HELP_WIDTH},
    )


def load(name: str, entry: CommandEntry) -> TyperCommand | TyperGroup:
    """Import what an entry names and make a command of it."""
    target = _imported(entry.home)
    if isinstance(target, Mapping):
        return group_of(name, entry.help, target)
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name, cls=_Command, short_help=entry.help)(target)
    command = typer.main.get_command(app)
    command.context_settings["max_content_width"] = HELP_WIDTH
    command.context_settings["ignore_unknown_options"] = entry.lenient
    assert isinstance(command, _Command)
    if entry.arrange:
        command.arranged = _imported(entry.arrange)
    return command


def _converted_when_needed(parameters: list[Any]) -> list[Any]:
    """Return the same parameters; values that are what they should be pass without typer's
    conversion. Pydantic, which it imports for that, was a third of the imports of `trial ls`.
    Older typers have none of it."""
    for each in parameters:
        usual = getattr(each, "get_runtime_param", None)
        if usual is not None and not isinstance(usual, _Conversion):
            each.get_runtime_param = _Conversion(usual)
    return parameters


class _Conversion:
    """Stands before a conversion of typer's."""

    def __init__(self, usual: Callable[[], Any]) -> None:
        self._usual = usual

    def __call__(self) -> _Conversion:
        return self

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the value as its command takes it. Raises typer's errors."""
        several = param.multiple or param.nargs == -1
        if value is None:
            return () if several else None
        kind, made = param.type_descriptor.annotation, param.type_descriptor.parameter_info.parser
        if made is None and kind is str and isinstance(value, str):
            return value
        if made is None and several and kind == list[str] and isinstance(value, tuple | list):
            return [*value]
        return self._usual().coerce(value, param=param, ctx=ctx)


def _imported(home: str) -> Any:
    module, _, attribute = home.partition(":")
    return getattr(importlib.import_module(f"dispatcher.{module}"), attribute)


class _Command(TyperCommand):
    """A command with the usual form of required arguments in its usage line.

    Attributes:
        arranged: turns the typed arguments into those to parse; None: they are the same.
    """

    arranged: Callable[[list[str]], list[str]] | None = None

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, the one for help among them."""
        return _converted_when_needed(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, arranged as the command's function needs them."""
        return super().parse_args(ctx, args if self.arranged is None else self.arranged(args))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line, with ``FILE`` in place of typer's ``{FILE}``."""
        pieces = super().collect_usage_pieces(ctx)
        return [re.sub(r"^\{(.*)\}", r"\1", piece) for piece in pieces]


class _Lazy(TyperGroup):
    """A group of placeholders; a command that is called replaces its placeholder."""

    def __init__(self, *, table: Table = {}, **settings: Any) -> None:  # noqa: B006 - never changed
        super().__init__(**settings)
        self.table = table
        for name, entry in table.items():
            self.add_command(TyperCommand(name, help=entry.help, rich_markup_mode=None), name)

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, the one for help among them."""
        return _converted_when_needed(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Answer ``--version`` after ``bequeath nni``, too, which some alias to ``nnictl``."""
        top = ctx.find_root()
        if ctx is not top and args[:1] in (["--version"], ["-v"]):
            top.command.parse_args(top, ["--version"])
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Import the command that is called, or that a completion looks into."""
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None and name in self.table:
            command = load(name, self.table[name])
        return name, command, rest

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands under the headings of their table."""
        width = max((len(name) for name in self.table), default=0)
        for panel in dict.fromkeys(entry.panel for entry in self.table.values()):
            rows: Sequence[tuple[str, str]] = [
                (name.ljust(width), entry.help)
                for name, entry in self.table.items()
                if entry.panel == panel
            ]
            with formatter.section(panel):
                formatter.write_dl(rows)


LazyGroup = _Lazy
