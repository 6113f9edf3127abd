"""Harm for the processes of one's own experiment, at random and by a seed: a test tool.

``bequeath run --chaos SEED`` leads an experiment in a process of its own while this room kills,
stops and delays that head, its tuner host, its agent and its trials, and starts the head again
when it was killed. What is promised must hold all the same; :mod:`tests.faults` judges it.

Read :mod:`~dispatcher.chaos.schedule` first (what is done when: pure), then
:mod:`~dispatcher.chaos.victims` (to whom: found, and told from later processes of the same
number) and :mod:`~dispatcher.chaos.supervisor` (the loop).
"""

from dispatcher.chaos.supervisor import Supervisor

__all__ = ["Supervisor"]
