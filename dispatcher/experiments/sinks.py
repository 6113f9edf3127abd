"""An experiment put into a tracker by hand, whether or not it runs."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dispatcher.errors import UserError
from dispatcher.experiment.sink_base import SinkConfig
from dispatcher.experiment.sink_kinds import read_sink
from dispatcher.experiments.view import ExperimentView
from dispatcher.folders.ownership import demand_ours, is_ours
from dispatcher.folders.status import is_led
from dispatcher.sinks.serving import SinkProgress, SinkThread

#: The kind that is meant where nothing names one: it needs neither package nor server.
USUAL = "tensorboard"

#: Seconds between looks at whether a head still leads, for who follows it.
_LOOK_S = 1.0


class Fed(NamedTuple):
    """A tracker that has what there is, as far as it took it."""

    sink: str
    target: str
    taken: int
    behind: int


def sinks_of(view: ExperimentView, values: Mapping[str, Any]) -> tuple[SinkConfig, ...]:
    """Return the sinks that are meant: the one that these values are about, else those of the
    experiment's file, else TensorBoard in the experiment's folder.

    Args:
        view: the experiment.
        values: keys of a sink as in a file; empty for those of the file.

    Raises:
        UserError: the values are wrong.
        NotOurs: the file is somebody else's, who could have secrets of ours looked up.
        ExperimentFileError: the experiment's record does not hold.
    """
    if values:
        return (read_sink({"kind": USUAL, **values}, Path.cwd()),)
    demand_ours(view.folder)  # whose references are looked up
    return view.config().fed or (read_sink({"kind": USUAL}, Path.cwd()),)


def feed(
    view: ExperimentView,
    section: SinkConfig,
    on_progress: Callable[[SinkProgress], None] = lambda _: None,
    *,
    follow: bool = False,
    tell: bool = True,
) -> Fed:
    """Give a tracker what it has not taken yet. Blocks.

    Args:
        view: the experiment.
        section: of the sink.
        on_progress: called now and then.
        follow: go on until no head leads any more.
        tell: whether it is one of the experiment's own, of which ``status`` tells.

    Raises:
        DispatcherError: the tracker or the store fails, and what was not taken stays to be taken.
    """
    ending = threading.Event()
    last = [SinkProgress(0, 0, "")]

    def watch(progress: SinkProgress) -> None:
        last[0] = progress
        on_progress(progress)

    one = SinkThread(view.folder, section, ending, watch, tell=tell and is_ours(view.folder))
    if follow and is_led(view.folder):
        threading.Thread(
            target=_end_with_head, args=(view.folder, ending), name="sink-end", daemon=True
        ).start()
    else:
        ending.set()
    try:
        one.run()
    finally:
        ending.set()
    if one.error is not None:
        raise one.error
    return Fed(section.title, one.target, last[0].taken, last[0].behind)


def _end_with_head(folder: Path, ending: threading.Event) -> None:
    while not ending.wait(_LOOK_S):
        if not is_led(folder):
            ending.set()


def write_for_tensorboard(views: Sequence[ExperimentView], folder: Path) -> None:
    """Write experiments below one folder, as TensorBoard compares them.

    Args:
        views: the experiments.
        folder: there, and nobody else's.

    Raises:
        DispatcherError: as of :func:`feed`.
    """
    for view in views:
        section = read_sink({"kind": USUAL, "folder": str(folder.absolute())}, folder)
        feed(view, section, tell=False)


def tensorboard_command(folder: Path, port: int) -> list[str]:
    """The command that serves a folder on this machine alone; empty if it is not installed."""
    program = shutil.which("tensorboard")
    command = [program] if program else []
    if not command and importlib.util.find_spec("tensorboard") is not None:
        command = [sys.executable, "-m", "tensorboard.main"]
    if not command:
        return []
    return [*command, "--logdir", str(folder), "--host", "127.0.0.1", "--port", str(port)]


def assignments(texts: Sequence[str]) -> dict[str, Any]:
    """Read ``KEY=VALUE`` texts; whole numbers, ``true`` and ``false`` as such.

    >>> assignments(["keep=20", "project=digits"])
    {'keep': 20, 'project': 'digits'}

    Raises:
        UserError: one is no such text.
    """
    words = {"true": True, "false": False}
    found: dict[str, Any] = {}
    for text in texts:
        key, mark, value = text.partition("=")
        if not mark or not key:
            raise UserError(f"{text!r} is no KEY=VALUE", hint="write e.g. --set project=digits")
        whole = value.isascii() and value.isdigit()
        found[key] = int(value) if whole else words.get(value, value)
    return found
