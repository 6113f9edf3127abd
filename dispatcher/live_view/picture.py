"""The picture of a running experiment that ``run`` and ``top`` draw on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from dispatcher.live_view.device_lines import device_lines
from dispatcher.live_view.scene import Scene, ends_of_workers, troubles_beside
from dispatcher.queries.records import json_value
from dispatcher.terminal import formatting
from dispatcher.terminal.console import Column, rich_table
from dispatcher.terminal.leaderboard import paths_of
from dispatcher.terminal.safe_text import safe_text

#: Lines of the picture that are not rows of trials: header, bar, best, counts, why, blanks.
_OTHER_LINES = 10

#: Parents named in a row; a wait for more is cut.
_PARENTS = 4

#: Troubles that are shown; 'status' lists them all.
_TROUBLES = 3

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
    devices = device_lines(snapshot)
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


def _header(scene: Scene, snapshot: dict[str, Any]) -> Text:
    phase = snapshot["phase"]
    return Text.assemble(
        (safe_text(scene.name), "bold"),
        "  ",
        (phase, _PHASES.get(phase, "")),
        (f"  {formatting.duration(snapshot['active_s'])}", "dim"),
    )


def _bar(scene: Scene, snapshot: dict[str, Any], width: int) -> RenderableType:
    done, total = snapshot["ended"], snapshot["max_trials"]
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
            formatting.parameters(best.named_parameters, without=paths_of(best)),
            width - len(head.plain),
        ),
        style="dim",
    )
    return head


def _counts(snapshot: dict[str, Any]) -> Text:
    """``slots 2/2   waiting 3   queued 1``; only what is not zero, after the slots."""
    counts = snapshot["counts"]
    text = Text.assemble(("slots ", "dim"), f"{counts['running']}/{snapshot['slots']} busy")
    asked = [
        ("in the tuner", counts["open"]),
        ("waiting for parents", counts["blocked"] + counts["held"]),
        ("parked", counts["parked"]),
        ("queued", counts["queued"]),
        ("between attempts", counts["backoff"]),
        ("being reported", counts["delivering"]),
    ]
    for name, many in asked:
        if many:
            text.append(f"   {name} ", style="dim")
            text.append(str(many))
    return text


def _trials(snapshot: dict[str, Any], room: int, width: int) -> RenderableType:
    running = [_running_row(row) for row in snapshot["running"]]
    waiting = _waiting_rows(snapshot["waiting"])
    asked = [
        [str(row["trial"]), Text("in the tuner", "dim"), formatting.duration(row["for_s"]), *_BLANK]
        for row in snapshot["open"]
    ]
    rows = running + waiting + asked
    counts = snapshot["counts"]
    whole = sum(counts[key] for key in ("running", "blocked", "held", "open"))
    listed = sum(len(snapshot[key]) for key in ("running", "waiting", "open"))
    cut = len(rows) > room or whole > listed
    shown = rows[: room - 1] if cut else rows
    table: Table = rich_table(_COLUMNS, shown, width)
    if cut:
        more = whole - listed + len(rows) - len(shown)
        return Group(table, Text(f"… and {more} more", style="dim"))
    return table


def _running_row(row: dict[str, Any]) -> list[str | Text]:
    attempt = f".{row['attempt']}" if row["attempt"] > 1 else ""
    return [
        f"{row['trial']}{attempt}",
        Text(row["state"], _STYLES.get(row["state"], "")),
        formatting.duration(row["for_s"]),
        formatting.NOTHING if row["parent"] is None else str(row["parent"]),
        safe_text(row["worker"] or ""),
        _takes(row),
        _metric(row["last"]),
    ]


def _takes(row: dict[str, Any]) -> str:
    """Return a trial's CPU, memory and GPU memory, once they were measured."""
    if "cpu" not in row:
        return formatting.NOTHING
    usage = f"{row['cpu']:.0f} %  {formatting.size(row['rss_bytes'])}"
    return (
        usage if row["gpu_bytes"] is None else f"{usage}  GPU {formatting.size(row['gpu_bytes'])}"
    )


def _metric(text: str | None) -> str:
    """Return a reported metric as text: the number first, then its other values."""
    value = json_value(text)
    if not isinstance(value, dict):
        return formatting.NOTHING if value is None else formatting.value(value)
    rest = formatting.parameters({key: item for key, item in value.items() if key != "default"})
    return f"{formatting.value(value.get('default'))}  {rest}".rstrip()


def _waiting_rows(waiting: list[dict[str, Any]]) -> list[list[str | Text]]:
    """Return a row for each request; one for all at the same line of the tuner's own code."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in waiting:
        place = row.get("place") if row["mode"] == "foreign" else ""
        groups.setdefault(place or f"trial {row['trial']}", []).append(row)
    return [
        _waiting_row(rows[0]) if len(rows) == 1 else _standing_row(place, rows)
        for place, rows in groups.items()
    ]


def _standing_row(place: str, rows: list[dict[str, Any]]) -> list[str | Text]:
    longest = max(row["for_s"] for row in rows)
    text = safe_text(f"stand in {place}")
    return [f"{len(rows)} requests", Text(text, "yellow"), formatting.duration(longest), *_BLANK]


def _waiting_row(row: dict[str, Any]) -> list[str | Text]:
    parents = ", ".join(map(str, row["for"][:_PARENTS]))
    parents += ", …" if len(row["for"]) > _PARENTS else ""
    if row["mode"] == "foreign":
        state = safe_text(f"stands in {row.get('place') or 'a wait of its own'}")
    else:
        word = " any of" if row["mode"] == "any" and len(row["for"]) > 1 else ""
        state = f"waits for{word} {parents}"
    return [str(row["trial"]), Text(state, "yellow"), formatting.duration(row["for_s"]), *_BLANK]


def _why(snapshot: dict[str, Any], width: int) -> Text:
    text = snapshot["why"]["text"]
    return Text.assemble(("why  ", "dim"), _cut(safe_text(text), width - 5))


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(1, width - 1)] + "…"
