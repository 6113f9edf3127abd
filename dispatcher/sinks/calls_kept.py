"""Files beside the cursor that hold what callbacks have called for; a backup has a copy of them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from dispatcher.folders.names import SINKS_NAME

#: The calls that have returned since the cursor was written, and the head whose end was reported.
RETURNED: Final = "callbacks.returned"
LAST_END: Final = "callbacks.end.json"

_CURSORS: Final = "callbacks-*.cursor.json"


def copy_kept(source: Path, target: Path) -> None:
    """Copy it, before the store is: a copy of an experiment calls for what comes later only.

    Args:
        source: an experiment's folder; its callbacks may be called meanwhile.
        target: the folder of its copy.

    Raises:
        OSError: it cannot be copied.
    """
    place = source / SINKS_NAME
    kept = [place / RETURNED, *sorted(place.glob(_CURSORS)), place / LAST_END]
    for path in kept:
        if path.is_file() and not path.is_symlink():
            (target / SINKS_NAME).mkdir(exist_ok=True)
            shutil.copyfile(path, target / SINKS_NAME / path.name)
