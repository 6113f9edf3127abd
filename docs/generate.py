"""Write the pages that are made from the code: ``make docs``. Tests compare them with it."""

import inspect
import tempfile
from pathlib import Path

import bequeath
from bequeath.names import HOMES
from dispatcher.cli.reference import reference_markdown as commands
from dispatcher.experiment.reference import reference_markdown as configuration
from dispatcher.foreign_files.page import page as from_others
from dispatcher.nni.page import page as from_nni
from dispatcher.operations.reference import reference_markdown as operations
from dispatcher.web.reference import reference_markdown as rest
from tuners.space.page import page as search_spaces

DOCS = Path(__file__).parent


def pages() -> dict[str, str]:
    """Name → text of each generated page."""
    return {
        "configuration.md": configuration(),
        "cli.md": commands(),
        "operations.md": operations(),
        "from-nni.md": from_nni(),
        "from-others.md": from_others(),
        "rest.md": _rest(),
        "search-spaces.md": search_spaces(),
        "python-api.md": _python_api(),
    }


_PYTHON_API = """\
# The Python API

<!-- Generated from bequeath/ by `make docs`; edits here are lost. -->

All public names are in one package, for trials, tuners and scripts:

```python
import bequeath as bq
```

The import loads nothing. A name is loaded when it is first used: a trial never loads the
dispatcher, and a tuner no web server. Checkers of types know all names. `python -m bequeath` is
the command line. `help(bq.Experiment)` has what the tables below leave out; so has the site
(`make docs`).
The packages behind it (`trial_runtime`, `tuners`, `dispatcher`) can be imported
by their own names, too.

A file of your own may be called `tuners.py`, `dispatcher.py` or `trial_runtime.py`. Your code then
finds your file, and the names that it lacks in our package. Our code finds ours. A file called
`bequeath.py` beside a script hides this package from that script.

On machines that have only what trials use ([SSH](remote-machines.md), jobs of services), the names
for trials are there, and the others are not.
"""

_GROUPS = {
    "For trials": (
        ("trial_runtime", "trial_runtime.morphism"),
        "[Writing a trial](trial-authors.md) shows how they are used.",
    ),
    "For tuners": (
        ("tuners",),
        "[Writing a tuner](tuner-authors.md) shows how they are used; "
        "[tuners.md](tuners.md) has the built-in ones.",
    ),
    "For search spaces": (
        ("tuners.space.parameters",),
        "[Search spaces](search-spaces.md) has all that can be written, in files as well.",
    ),
    "For scripts and notebooks": (
        ("dispatcher", "dispatcher.study", "trial_runtime.errors", "trial_runtime.api_errors"),
        "The methods of an experiment are [operations](operations.md). "
        "[Notebooks](notebooks.md) and [ask and tell](ask-tell.md) show how they are used.",
    ),
}


def _python_api() -> str:
    """Return the page of all names of ``bequeath``."""
    text = _PYTHON_API
    for title, (modules, where) in _GROUPS.items():
        text += f"\n## {title}\n\n{where}\n\n| name | |\n|---|---|\n"
        for name in sorted(HOMES, key=str.lower):
            if HOMES[name] in modules and not name.startswith("__"):
                about = inspect.getdoc(getattr(bequeath, name)) or ""
                first = " ".join(about.partition("\n\n")[0].split()).replace("``", "`")
                text += f"| `bq.{name}` | {first} |\n"
    return text


def _rest() -> str:
    with tempfile.TemporaryDirectory() as folder:
        return rest(Path(folder))


if __name__ == "__main__":
    for name, text in pages().items():
        (DOCS / name).write_text(text)
