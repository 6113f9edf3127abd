"""The picture of a running experiment that ``run`` and ``top`` draw on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UnsetType
from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from dispatcher.control.snapshot import (
    DeviceSnapshot,
    HeadSnapshot,
    RunningTrial,
    WaitingRequest,
)
from dispatcher.live_view.scene import Scene, ends_of_workers, troubles_beside, workers_by_way
from dispatcher.queries.records import json_value
from dispatcher.safe_text import safe_text
from dispatcher.terminal import formatting
from dispatcher.terminal.console import Column, rich_table
from dispatcher.text_width import some_of

#: Lines of the picture that are not rows of trials: header, bar, best, counts, why, blanks.
_OTHER_LINES = 10

#: Parents named in a row; a wait for more is cut.
_PARENTS = 4

#: Troubles that are shown; 'status' lists them all.
_TROUBLES = 3

#: Workers named behind one way to the head; ``status --json`` has them all.
_WAY_WORKERS = 3

#: Devices shown; ``top --json`` has them all.
MOST_DEVICES = 8

#: Trials named behind one device.
_DEVICE_TRIALS = 4

_COLUMNS = (
    Column("trial", right=True),
    Column("state", shrink=True),
    Column("for", right=True),
    Column("parent", right=True),
    Column("where", shrink=True),
    Column("takes"),
    Column("last metric", shrink=True),
)
_BLANK = [""] * (len(_COLUMNS) - 3)  # of a row without a process
_STYLES = {"running": "green", "starting": "cyan", "stopping": "yellow"}
_PHASES = {"running": "green", "draining": "yellow", "stopping": "yellow", "failed": "red"}


def picture(scene: Scene, width: int, height: int, messages: Sequence[str] = ()) -> RenderableType:
    """Draw the experiment, never higher than the terminal.

    Args:
        scene: what to show.
        width: columns of the terminal.
        height: lines of the terminal.
        messages: the newest events, oldest first.
    """
    snapshot = scene.snapshot
    if snapshot is None:
        return Text(f"{scene.name}  {scene.silent or 'starting'} …", style="dim")
    troubles = troubles_beside(snapshot)[:_TROUBLES]
    ends = ends_of_workers(snapshot)[:1]  # the first to end
    messages = [*map(safe_text, (*troubles, *ends)), *messages]
    devices = [*device_lines(snapshot), *_ways(snapshot, width)]
    room = max(3, height - _OTHER_LINES - len(messages) - len(devices))
    parts: list[RenderableType] = [_header(scene, snapshot), _bar(scene, snapshot, width), Text()]
    parts.append(_best(scene, width))
    parts.append(_counts(snapshot))
    parts.append(Text())
    parts.append(_trials(snapshot, room, width))
    parts.append(Text())
    parts.extend(devices)
    parts.append(_why(snapshot, width))
    parts.extend(Text(_cut(text, width), style="yellow") for text in messages)
    return Group(*parts)


def _header(scene: Scene, snapshot: HeadSnapshot) -> Text:
    phase = snapshot.phase
    return Text.assemble(
        (safe_text(scene.name), "bold"),
        "  ",
        (phase, _PHASES.get(phase, "")),
        (f"  {formatting.duration(snapshot.active_s)}", "dim"),
    )


def _bar(scene: Scene, snapshot: HeadSnapshot, width: int) -> RenderableType:
    done, total = snapshot.ended, snapshot.max_trials
    parts = [f"{done}/{total} trials" if total else formatting.count(done, "trial")]
    if scene.per_minute is not None:
        parts.append(f"{scene.per_minute:.3g}/min")
    if scene.left_s is not None:
        parts.append(f"{formatting.duration(scene.left_s)} left")
    text = Text("   ".join(parts))
    if not total:
        return text
    table = Table.grid(padding=(0, 2, 0, 0))
    length = max(10, min(60, width - len(text.plain) - 4))
    bar = ProgressBar(
        total=total, completed=min(done, total), width=length, finished_style="bar.complete"
    )
    table.add_row(bar, text)
    return table


def _best(scene: Scene, width: int) -> Text:
    if scene.best is None:
        return Text("best  none yet", style="dim")
    best = scene.best
    head = Text.assemble(
        ("best  ", "dim"), (formatting.number(best.value), "bold"), f"  trial {best.id}  "
    )
    head.append(
        _cut(
            formatting.parameters_of(best),
            width - len(head.plain),
        ),
        style="dim",
    )
    return head


def _counts(snapshot: HeadSnapshot) -> Text:
    """``slots 2/2   waiting 3   queued 1``; only what is not zero, after the slots."""
    counts = snapshot.counts
    text = Text.assemble(("slots ", "dim"), f"{counts.running}/{snapshot.slots} busy")
    asked = [
        ("in the tuner", counts.open),
        ("waiting for parents", counts.waiting),
        ("parked", counts.parked),
        ("queued", counts.queued),
        ("between attempts", counts.backoff),
        ("being reported", counts.delivering),
    ]
    for name, many in asked:
        if many:
            text.append(f"   {name} ", style="dim")
            text.append(str(many))
    return text


def _trials(snapshot: HeadSnapshot, room: int, width: int) -> RenderableType:
    running = [_running_row(row) for row in snapshot.running]
    waiting = _waiting_rows(snapshot.waiting)
    asked = [
        [str(row.trial), Text("in the tuner", "dim"), formatting.duration(row.for_s), *_BLANK]
        for row in snapshot.open
    ]
    rows = running + waiting + asked
    counts = snapshot.counts
    whole = counts.running + counts.waiting + counts.open
    listed = len(snapshot.running) + len(snapshot.waiting) + len(snapshot.open)
    cut = len(rows) > room or whole > listed
    shown = rows[: room - 1] if cut else rows
    table: Table = rich_table(_COLUMNS, shown, width)
    if cut:
        more = whole - listed + len(rows) - len(shown)
        return Group(table, Text(f"… and {more} more", style="dim"))
    return table


def _running_row(row: RunningTrial) -> list[str | Text]:
    attempt = f".{row.attempt}" if row.attempt > 1 else ""
    return [
        f"{row.trial}{attempt}",
        Text(row.state, _STYLES.get(row.state, "")),
        formatting.duration(row.for_s),
        formatting.NOTHING if row.parent is None else str(row.parent),
        safe_text(row.worker or ""),
        _takes(row),
        _metric(row.last),
    ]


def _takes(row: RunningTrial) -> str:
    """Return a trial's CPU, memory and GPU memory, once they were measured."""
    if isinstance(row.cpu, UnsetType) or isinstance(row.rss_bytes, UnsetType):
        return formatting.NOTHING
    usage = f"{row.cpu:.0f} %  {formatting.size(row.rss_bytes)}"
    if isinstance(row.gpu_bytes, int):
        usage += f"  GPU {formatting.size(row.gpu_bytes)}"
    return usage


def _metric(text: str | None) -> str:
    """Return a reported metric as text: the number first, then its other values."""
    value = json_value(text)
    if not isinstance(value, dict):
        return formatting.NOTHING if value is None else formatting.value(value)
    rest = formatting.parameters({key: item for key, item in value.items() if key != "default"})
    return f"{formatting.value(value.get('default'))}  {rest}".rstrip()


def _waiting_rows(waiting: list[WaitingRequest]) -> list[list[str | Text]]:
    """Return a row for each request; one for all at the same line of the tuner's own code."""
    groups: dict[str, list[WaitingRequest]] = {}
    for row in waiting:
        place = row.place if row.mode == "foreign" else ""
        groups.setdefault(place or f"trial {row.trial}", []).append(row)
    return [
        _waiting_row(rows[0]) if len(rows) == 1 else _standing_row(place, rows)
        for place, rows in groups.items()
    ]


def _standing_row(place: str, rows: list[WaitingRequest]) -> list[str | Text]:
    longest = max(row.for_s for row in rows)
    text = safe_text(f"stand in {place}")
    return [f"{len(rows)} requests", Text(text, "yellow"), formatting.duration(longest), *_BLANK]


def _waiting_row(row: WaitingRequest) -> list[str | Text]:
    parents = ", ".join(map(str, row.parents[:_PARENTS]))
    parents += ", …" if len(row.parents) > _PARENTS else ""
    if row.mode == "foreign":
        state = safe_text(f"stands in {row.place or 'a wait of its own'}")
    else:
        word = " any of" if row.mode == "any" and len(row.parents) > 1 else ""
        state = f"waits for{word} {parents}"
    return [str(row.trial), Text(state, "yellow"), formatting.duration(row.for_s), *_BLANK]


def _why(snapshot: HeadSnapshot, width: int) -> Text:
    text = snapshot.why.text
    return Text.assemble(("why  ", "dim"), _cut(safe_text(text), width - 5))


def _ways(snapshot: HeadSnapshot, width: int) -> list[Text]:
    """Return a line with the workers of each way to the head, if agents have several."""
    parts = []
    for way, names in workers_by_way(snapshot):
        parts.append(f"{some_of(names, _WAY_WORKERS)}: {way}")
    if not parts:
        return []
    return [Text.assemble(("ways  ", "dim"), _cut(safe_text("   ".join(parts)), width - 6))]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(1, width - 1)] + "…"


def device_lines(snapshot: HeadSnapshot) -> list[Text]:
    """Return a line for each device, those in use and in trouble first."""
    devices = sorted(snapshot.devices, key=_idle_last)
    several = len({row.worker for row in devices}) > 1
    lines = [_device_line(row, several) for row in devices[:MOST_DEVICES]]
    if len(devices) > MOST_DEVICES:
        lines.append(Text(f"… and {len(devices) - MOST_DEVICES} more GPUs", style="dim"))
    return lines


def _idle_last(row: DeviceSnapshot) -> bool:
    return not (row.trials or row.trouble)


def _device_line(row: DeviceSnapshot, several: bool) -> Text:
    place = f"{row.worker}:" if several else ""
    part = " part" if row.id.startswith("MIG-") else ""
    text = Text.assemble(
        ("GPU ", "dim"),
        safe_text(f"{place}{row.index}{part}"),
        (f"  {_device_name(row)}", "dim"),
    )
    for measure in _measures(row):
        text.append(f"   {measure}")
    if row.trials:
        shown = ", ".join(map(str, row.trials[:_DEVICE_TRIALS]))
        more = ", …" if len(row.trials) > _DEVICE_TRIALS else ""
        text.append(f"   {'trials' if len(row.trials) > 1 else 'trial'} {shown}{more}")
    if row.old_s:
        text.append(f"   {formatting.duration(row.old_s)} old", style="yellow")
    if row.trouble:
        text.append(f"   {safe_text(row.trouble)}", style="yellow")
    return text


def _device_name(row: DeviceSnapshot) -> str:
    return safe_text(row.name)


def _measures(row: DeviceSnapshot) -> Sequence[str]:
    measures = []
    if row.utilization is not None:
        measures.append(f"{row.utilization:.0f} %")
    if row.used_bytes is not None:
        measures.append(f"{formatting.size(row.used_bytes)} of {formatting.size(row.memory_bytes)}")
    if row.watts is not None:
        measures.append(f"{row.watts:.0f} W")
    if row.celsius is not None:
        measures.append(f"{row.celsius:.0f} °C")
    return measures
