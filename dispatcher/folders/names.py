"""Names of the files in an experiment's folder, which readers of all rooms share."""

from __future__ import annotations

from typing import Final

STORE_NAME: Final = "journal.sqlite"
CONFIG_NAME: Final = "experiment.json"
SHARED_NAME: Final = "experiment.shared.json"  # the same with secrets masked, for others
LOCK_NAME: Final = "head.lock"
LEADER_NAME: Final = "leader.json"
