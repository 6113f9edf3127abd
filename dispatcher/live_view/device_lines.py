"""The lines of a live view that show devices: load, memory, temperature, and their trials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.text import Text

from dispatcher.terminal import formatting
from dispatcher.terminal.safe_text import safe_text

#: Devices shown; ``top --json`` has them all.
MOST_LINES = 8

#: Trials named behind one device.
_TRIALS = 4


def device_lines(snapshot: dict[str, Any]) -> list[Text]:
    """Return a line for each device, those in use and in trouble first."""
    devices = sorted(snapshot.get("devices", ()), key=_idle_last)
    several = len({row["worker"] for row in devices}) > 1
    lines = [_line(row, several) for row in devices[:MOST_LINES]]
    if len(devices) > MOST_LINES:
        lines.append(Text(f"… and {len(devices) - MOST_LINES} more GPUs", style="dim"))
    return lines


def _idle_last(row: dict[str, Any]) -> bool:
    return not (row["trials"] or row["trouble"])


def _line(row: dict[str, Any], several: bool) -> Text:
    place = f"{row['worker']}:" if several else ""
    part = " part" if row["id"].startswith("MIG-") else ""
    text = Text.assemble(
        ("GPU ", "dim"), safe_text(f"{place}{row['index']}{part}"), (f"  {_name(row)}", "dim")
    )
    for measure in _measures(row):
        text.append(f"   {measure}")
    if row["trials"]:
        shown = ", ".join(map(str, row["trials"][:_TRIALS]))
        more = ", …" if len(row["trials"]) > _TRIALS else ""
        text.append(f"   {'trials' if len(row['trials']) > 1 else 'trial'} {shown}{more}")
    if row["old_s"]:
        text.append(f"   {formatting.duration(row['old_s'])} old", style="yellow")
    if row["trouble"]:
        text.append(f"   {safe_text(row['trouble'])}", style="yellow")
    return text


def _name(row: dict[str, Any]) -> str:
    return safe_text(row["name"])


def _measures(row: dict[str, Any]) -> Sequence[str]:
    measures = []
    if row["utilization"] is not None:
        measures.append(f"{row['utilization']:.0f} %")
    if row["used_bytes"] is not None:
        measures.append(
            f"{formatting.size(row['used_bytes'])} of {formatting.size(row['memory_bytes'])}"
        )
    if row["watts"] is not None:
        measures.append(f"{row['watts']:.0f} W")
    if row["celsius"] is not None:
        measures.append(f"{row['celsius']:.0f} °C")
    return measures
