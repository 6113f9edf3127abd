"""One program: a verb, and for most an answer.

The verb is the argument. Of stdin the first line is its arguments as JSON, and the rest its data;
the last line of stdout is the answer as JSON. Modules that a probe imports may print before that.
Those that talk, and the one that a scheduler starts, see to that themselves.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module

#: Verbs whose module has ``answer(arguments)``.
ANSWERED = ("gpus", "leftovers", "probe", "tidy", "unpack", "unwheel")

#: Verbs whose module has ``main()``: stdin, stdout and further arguments are theirs alone.
TALKING = ("allocation", "files", "shell")


def main() -> int:
    """Do what the verb says; returns the exit code."""
    verb = sys.argv[1]
    if verb in TALKING:
        code: int = import_module(f".{verb}", __package__).main()
        return code
    if verb not in ANSWERED:
        raise ValueError(f"no verb: {verb!r}")
    arguments = json.loads(sys.stdin.buffer.readline())
    answer = import_module(f".{verb}", __package__).answer(arguments)
    sys.stdout.write(json.dumps(answer) + "\n")
    return 0
