"""``bequeath config``: what an experiment file may say."""

from __future__ import annotations

from dispatcher.cli.lazy_group import CommandEntry, Table
from dispatcher.terminal.console import print_json, say

CONFIG: Table = {
    "schema": CommandEntry(
        "cli.config:schema", "Print the JSON Schema of experiment files, for editors."
    ),
    "reference": CommandEntry(
        "cli.config:reference", "Print every key with its type, default and meaning."
    ),
}


def schema() -> None:
    """Print the JSON Schema of experiment files.

    Editors that know YAML schemas complete and check with it:
    `bequeath config schema > bequeath.schema.json`, and in the file's first line
    `# yaml-language-server: $schema=bequeath.schema.json`.
    """
    from dispatcher.experiment.schema import json_schema

    print_json(json_schema())


def reference() -> None:
    """Print every key of an experiment file with its type, default and meaning (Markdown)."""
    from dispatcher.experiment.reference import reference_markdown

    say(reference_markdown().rstrip())
