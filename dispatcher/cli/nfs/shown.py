"""Printing of reports by the commands of ``bequeath nfs``: steps, reasons, notes, status."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dispatcher.safe_text import keep_lines, safe_text
from dispatcher.terminal.console import heading, note, print_facts, say

if TYPE_CHECKING:
    from nfs_setup.report import Line, Report

_MARKS = {"done": "✓", "already": "·", "planned": "→", "undone": "✓", "kept": "•"}


def show_step(line: Line) -> None:
    """Print one step, with its diff or command."""
    state = "" if line.state in ("done", "undone") else f"{line.state}: "
    say(f"{_MARKS.get(line.state, '?')} {state}{safe_text(line.text)}")
    if line.detail:
        say("\n".join(f"    {text}" for text in keep_lines(line.detail).splitlines()))


def show_report(report: Report) -> None:
    """Print all but the steps, which are printed as they are made."""
    if report.verb == "status":
        show_status(report.shown)
    show_remarks(report)
    if report.verb == "status":
        return
    if not report.changed and not any(line.state == "kept" for line in report.steps):
        undone = report.verb == "undo"
        say(f"nothing to {'undo' if undone else 'change: everything is so already'}")
    elif report.dry_run:
        say("nothing was changed (--dry-run)")


def show_remarks(report: Report) -> None:
    """Print the reason of each option, notes, and what the user has to do."""
    for option, why in report.shown.get("options", {}).items():
        note(f"  {safe_text(option)}: {safe_text(str(why))}")
    for one in report.notes:
        note(f"{safe_text(one.level)}: {safe_text(one.text)}")


def show_status(shown: dict[str, Any]) -> None:
    """Print what a machine exports and mounts."""
    if not shown["shares"] and not shown["mounts"]:
        say("nothing was set up on this machine")
    for share in shown["shares"]:
        say(heading(f"exports {safe_text(share['path'])}"))
        clients = ", ".join(f"{c['client']} ({c['options']})" for c in share["clients"])
        print_facts([("exported", "yes" if share["exported"] else "no"), ("clients", clients)])
    if "server" in shown:
        server = shown["server"]
        using = ", ".join(server["clients"]) or "nobody right now"
        print_facts([("versions", ", ".join(server["versions"]) or "none"), ("used by", using)])
    for mount in shown["mounts"]:
        say(heading(f"mounts {safe_text(mount['point'])}"))
        if mount["mounted"]:
            print_facts([("from", mount["source"]), ("options", ",".join(mount["options"]))])
        else:
            print_facts([("mounted", "at the first look" if mount["waiting"] else "no")])
