"""The state diagram in ``docs/states.md``, drawn from the core's table.

``python -m tests.arch.states`` writes it; ``test_states`` compares.
"""

from pathlib import Path

from dispatcher.core import table
from dispatcher.core.model import TrialState

PAGE = Path(__file__).parents[2] / "docs" / "states.md"


def page() -> str:
    """Which events have an effect in which state of a trial, as a diagram and a table."""
    lines = [
        "# States of a trial",
        "",
        "Drawn from `dispatcher/core/table.py` by `python -m tests.arch.states`. An arrow back to",
        "the same box names what the state can be told; where it leads is decided in",
        "`dispatcher/core/transitions/`.",
        "",
        "```mermaid",
        "stateDiagram-v2",
    ]
    for state in TrialState:
        names = sorted(kind.__name__ for kind, legal in table.LEGAL.items() if state in legal)
        lines.extend(f"    {state.name} --> {state.name}: {name}" for name in names)
    lines += ["```", "", "| event | has its effect in | is late in |", "|---|---|---|"]
    for kind in table.LEGAL:
        legal = ", ".join(s.name for s in TrialState if s in table.LEGAL[kind])
        late = ", ".join(s.name for s in TrialState if s in table.LATE[kind]) or "-"
        lines.append(f"| {kind.__name__} | {legal} | {late} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
