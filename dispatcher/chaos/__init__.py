"""Harm for the processes of one's own experiment, at random and by a seed: a test tool.

``bequeath run --chaos SEED`` leads an experiment in a process of its own while this package kills,
stops and delays that head, its tuner host, its agent and its trials, and starts the head again
after a kill. All promises must hold all the same; :mod:`tests.faults` judges that.

Read :mod:`~dispatcher.chaos.schedule` first (the acts and their times: pure), then
:mod:`~dispatcher.chaos.victims` (finds the processes, and tells them from later ones of the same
number) and :mod:`~dispatcher.chaos.supervisor` (the loop).
"""

from dispatcher.chaos.supervisor import Supervisor

__all__ = ["Supervisor"]
