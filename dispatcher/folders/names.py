"""Names of the files in an experiment's folder, which readers of all rooms share."""

from __future__ import annotations

from typing import Final

STORE_NAME: Final = "journal.sqlite"
CONFIG_NAME: Final = "experiment.json"
SHARED_NAME: Final = "experiment.shared.json"  # the same with secrets masked, for others
LOCK_NAME: Final = "head.lock"
LEADER_NAME: Final = "leader.json"
CHANGE_LOCK_NAME: Final = "lead.lock"  # held while the lead changes
RUN_FILE_NAME: Final = "run.json"  # where the head that runs can be asked
LOGS: Final = "logs"
HEAD_LOG_NAME: Final = "head.log"
HEAD_STDERR_NAME: Final = "head.stderr"  # what a head in the background prints at its end
TUNER_LOG_NAME: Final = "tuner.log"
SINKS_LOG_NAME: Final = "sinks.log"
CALLBACKS_LOG_NAME: Final = "callbacks.log"  # what callbacks print, and how they failed
CHAOS_LOG_NAME: Final = "chaos.log"
TRIALS: Final = "trials"

#: The command of trials of a study, which a program leads: none of them is ever started by it.
LED_BY_PROGRAM: Final = "false  # led by a program: bq.Study"

#: Cursors of sinks that have no place for theirs.
SINKS_NAME = "sinks"
