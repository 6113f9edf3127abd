"""One HTML file of a run: what goes in within so many bytes, and the document around it."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec

from dispatcher.errors import UserError
from dispatcher.web.saved.contents import Run
from dispatcher.web.saved.linking import ModuleLinker

#: Bytes of a file, unless another number is asked for: what can be attached to a message.
USUAL_BYTES: Final = 20 << 20

#: Trials in one part: what a browser unpacks when somebody looks at one of them.
_TRIALS_A_PART: Final = 200
_LOGS_A_PART: Final = 50

#: Points of each curve, the first number by which all trials fit.
_POINTS: Final = (200, 60, 20, 0)

#: Trials whose tensors are told, and whose logs: those that matter most.
_TENSORS: Final = 200
_LOGS: Final = 2_000

#: Bytes around a part, and those that sentences on what is left out take.
_AROUND: Final = 100
_SAID: Final = 8_192

#: Bytes of one log that are taken along, from its end.
_LOG_BYTES: Final = 16 << 10

_DOCUMENT: Final = """<!doctype html>
<html lang="en" data-start="{start}" data-saved-at="{at}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<link rel="icon" href="data:image/svg+xml;base64,{icon}">
<style>{style}</style>
</head>
<body>
<div id="page"><p class="quiet loading">The page is loading. It needs JavaScript.</p></div>
{parts}
<script type="module">{script}</script>
</body>
</html>
"""


@dataclass
class SavedRun:
    """A file that was made, and sentences on what it leaves out."""

    document: bytes
    trials: int
    detailed: int
    logs: int
    left_out: list[str]


@dataclass
class _Parts:
    """Parts that were packed, within a budget of bytes."""

    budget: int
    blocks: dict[str, str] = field(default_factory=dict)
    kinds: dict[str, list[list[str]]] = field(default_factory=dict)

    def take(self, kind: str, content: dict[str, Any]) -> bool:
        """Put a part in if there is room for it."""
        packed = _packed(content)
        # The first part names what each part holds; it was measured with all trials.
        named = 0 if kind == "trials" else len(msgspec.json.encode([*content])) * 4 // 3
        if len(packed) + named + _AROUND > self.budget:
            return False
        self.budget -= named
        self.put(f"{kind}-{len(self.kinds.setdefault(kind, []))}", packed)
        self.kinds[kind].append(list(content))
        return True

    def put(self, name: str, packed: str) -> None:
        """Put a part in."""
        self.blocks[name] = packed
        self.budget -= len(packed) + _AROUND


def save_run(
    run: Run,
    static: Path,
    *,
    most_bytes: int = USUAL_BYTES,
    logs: bool = False,
    now: float | None = None,
) -> SavedRun:
    """Make one HTML file of a run.

    Args:
        run: the run.
        static: the page's files.
        most_bytes: of the file.
        logs: whether to take ends of logs along.
        now: seconds since the epoch; None: those of the clock.

    Raises:
        UserError: not even the table of its trials fits.
        OSError: a file of the page cannot be read.
    """
    at = round(time.time() if now is None else now, 3)
    shell = _Shell(static)
    whole = run.answers()
    ranked = run.ranked()
    base = f"/experiments/{quote(run.id, safe='')}"
    answers = {f"{base}{path}": answer for path, answer in whole.items()}
    # The first part names all others, so it comes last; here it is measured.
    directory = _packed({"answers": answers, "parts": [list(map(str, ranked))]})
    parts = _Parts(most_bytes - shell.nbytes - len(directory) - _SAID)
    if parts.budget < 0:
        needed = (most_bytes - parts.budget) / (1 << 20)
        raise UserError(
            f"the page and the table of {len(ranked):,} trials take {needed:.1f} MiB already",
            hint=f"allow as much: --most {needed + 1:.0f}",
        )
    left_out: list[str] = []
    detailed = _take_details(run, ranked, parts, left_out)
    _take_tensors(run, ranked, parts, left_out)
    many_logs = _take_logs(run, ranked, parts, left_out) if logs else 0
    if not logs:
        left_out.append("What trials have printed: --with-logs takes the ends of logs along.")
    left_out.append("Files of trials, weights, and the experiment's settings.")
    session = {
        "version": version("bequeath"), "scope": "read", "token": "", "user": "",
        "logs": logs, "saved_at": at, "left_out": left_out,
    }  # fmt: skip
    first = {
        "experiment": run.id, "base": base, "parts": parts.kinds, "left_out": left_out,
        "answers": {"/session": session, **answers},
    }  # fmt: skip
    parts.blocks["run"] = _packed(first)
    document = shell.document(run, at, parts.blocks)
    return SavedRun(document, len(ranked), detailed, many_logs, left_out)


def _take_details(run: Run, ranked: list[int], parts: _Parts, left_out: list[str]) -> int:
    """Take all about as many trials as fit; return how many."""
    chunks = list(_chunks(ranked, _TRIALS_A_PART))
    points = _POINTS[0]
    for points in _POINTS if chunks else ():
        size = len(_packed(_details(run, chunks[0], points)))
        if size * len(ranked) / len(chunks[0]) <= 0.9 * parts.budget:
            break
    taken = 0
    for chunk in chunks:
        if not parts.take("trials", _details(run, chunk, points)):
            break
        taken += len(chunk)
    if points == 0:
        left_out.append("Curves of intermediate metrics: the file would be larger than was asked.")
    elif points < _POINTS[0]:
        left_out.append(f"Points of curves: each has at most {points}.")
    if taken < len(ranked):
        left_out.append(
            f"Details of {len(ranked) - taken:,} of {len(ranked):,} trials, those with the least "
            "results: they are in the table and in all pictures, without attempts and curves."
        )
    return taken


def _details(run: Run, trials: Sequence[int], points: int) -> dict[str, Any]:
    """Return all about some trials; curves have the seven digits that a picture needs."""
    found = run.details(trials, points)
    for detail in found.values():
        if detail["curve"] is not None:
            detail["curve"]["values"] = [float(f"{one:.7g}") for one in detail["curve"]["values"]]
    return found


def _take_tensors(run: Run, ranked: list[int], parts: _Parts, left_out: list[str]) -> None:
    found = {str(one): told for one in ranked[:_TENSORS] if (told := run.tensors(one)) is not None}
    known = sum(not told["why"] for told in found.values())
    if found and not parts.take("tensors", found):
        left_out.append("Which tensors came from whom: there was no room.")
    elif known and len(ranked) > _TENSORS:
        left_out.append(f"Tensors of all but the {_TENSORS} trials that matter most.")


def _take_logs(run: Run, ranked: list[int], parts: _Parts, left_out: list[str]) -> int:
    """Take ends of logs as long as there is room; return of how many trials."""
    taken = 0
    for chunk in _chunks(ranked[:_LOGS], _LOGS_A_PART):
        found = {
            f"{trial}/{stream}": told
            for trial in chunk
            for stream in ("stdout", "stderr")
            if (told := run.log(trial, stream, _LOG_BYTES)) is not None
        }
        if not parts.take("logs", found):
            break
        taken += len(chunk)
    if not taken:
        left_out.append("Logs: there was no room.")
        return 0
    left_out.append(f"Of each log all but its last {_LOG_BYTES >> 10} KiB.")
    if taken < len(ranked):
        left_out.append(f"Logs of all but the {taken:,} trials that matter most.")
    return taken


def _chunks(ranked: Sequence[int], many: int) -> Iterator[Sequence[int]]:
    return (ranked[at : at + many] for at in range(0, len(ranked), many))


def _packed(content: Any) -> str:
    """Return a value as text that has no mark but letters, digits, ``+``, ``/`` and ``=``."""
    encoded = msgspec.json.encode(content)
    return base64.b64encode(gzip.compress(encoded, 6, mtime=0)).decode("ascii")


class _Shell:
    """The page without data: its script, its style, and the policy that allows only these."""

    def __init__(self, static: Path) -> None:
        self._script = "\n" + ModuleLinker(static).link("page/main.js")
        styles = [(static / name).read_text() for name in ("vendor/uplot.css", "page.css")]
        self._style = "\n".join(styles)
        self._icon = base64.b64encode((static / "icon.svg").read_bytes()).decode("ascii")
        notices = [path.read_text() for path in sorted(static.glob("vendor/LICENSE.*"))]
        self._notices = html.escape("\n\n".join(notices))
        self.nbytes = sum(len(text.encode()) for text in (self._script, self._style, self._icon))
        self.nbytes += len(self._notices.encode())

    def document(self, run: Run, at: float, blocks: dict[str, str]) -> bytes:
        """Return the document with its parts."""
        policy = (
            f"default-src 'none'; script-src '{_hash(self._script)}'; "
            f"style-src '{_hash(self._style)}'; img-src data:; base-uri 'none'; form-action 'none'"
        )
        parts = [
            f'<script type="application/octet-stream" id="part-{name}">{packed}</script>'
            for name, packed in blocks.items()
        ]
        parts.append(f"<template>{self._notices}</template>")
        return _DOCUMENT.format(
            start=html.escape(f"e/{quote(run.id, safe='')}", quote=True),
            at=at,
            policy=policy,
            title=html.escape(f"{run.name} · bequeath"),
            icon=self._icon,
            style=self._style,
            parts="\n".join(parts),
            script=self._script,
        ).encode()


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
