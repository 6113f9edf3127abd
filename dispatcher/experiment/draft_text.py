"""A translated file under our keys, as text with the reason for each."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from ruamel.yaml import YAML

from dispatcher.experiment.draft import Draft, KeyDecision
from tuners.plain_json import written_path

_WIDTH = 90


def native_text(draft: Draft, origin: str, changed: Mapping[str, Any], framework: str) -> str:
    """Return the text of the native file.

    Args:
        draft: what the file was turned into.
        origin: what to call the file.
        changed: top-level values to write in place of the draft's; None leaves a key out.
        framework: what the file was written for.
    """
    values = {key: value for key, value in {**draft.values, **changed}.items() if value is not None}
    lines = [
        f"# Converted from {origin}, written for {framework}, by 'bequeath convert'.",
        "# Relative paths count from the folder of this file: keep it beside that one.",
        "",
    ]
    for key, value in values.items():
        about = [each for each in draft.decisions if each.native[:1] == (key,)]
        lines += _comments(about)
        lines += _yaml({key: value})
    dropped = [each for each in draft.decisions if not each.native]
    if dropped:
        lines += ["", "# Not needed here:"]
        for each in dropped:
            lines += _wrapped(f"{written_path(each.source)}: {each.text}")
    if draft.remarks:
        lines += ["", "# To be known:"]
        for text in draft.remarks:
            lines += _wrapped(text)
    return "\n".join(lines) + "\n"


def _comments(decisions: list[KeyDecision]) -> Iterator[str]:
    """Yield a line for each key that changed its name or has a reason; none for the others."""
    same = {(each.source, each.text): each for each in decisions}  # of several keys, one line
    for each in same.values():
        source, native = written_path(each.source), written_path(each.native)
        if not each.source:
            yield from _wrapped(each.text)
        elif source != native or each.text:
            renamed = source if source != native else ""
            reason = f"{': ' if renamed else ''}{each.text}" if each.text else ""
            yield from _wrapped(f"{renamed}{reason}")


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent="# ", subsequent_indent="#   ", break_on_hyphens=False
    )


def _yaml(value: dict[str, Any]) -> list[str]:
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.allow_unicode = True
    yaml.width = 4096
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    stream = io.StringIO()
    yaml.dump(value, stream)
    return stream.getvalue().rstrip("\n").split("\n")
