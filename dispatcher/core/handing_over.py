"""Handing over: what still runs in a place that ends soon is asked to stop, so that it writes a
checkpoint and goes on elsewhere. It is tried again as one that was preempted.
"""

from dispatcher.core.actions import Action, ReportWorker
from dispatcher.core.model import AttemptState, Phase, State, Worker
from dispatcher.core.place_ends import end_of, next_hand_over, note_ends
from dispatcher.core.transitions.attempt import stop_of


def hand_over(state: State, out: list[Action]) -> None:
    """Ask what runs in a place that ends soon to stop.

    Args:
        state: changed in place.
        out: gets the stop of each attempt there, and a report.
    """
    due = next_hand_over(state)
    if due is None or state.now < due or state.phase not in (Phase.RUNNING, Phase.DRAINING):
        return
    for worker in state.workers.values():
        ends_at = end_of(worker)
        if ends_at is None or not worker.alive or worker.closing:
            continue
        if state.now >= ends_at - state.settings.hand_over_s:
            worker.closing = True
            _ask_to_go(state, worker, ends_at, out)
    note_ends(state)


def _ask_to_go(state: State, worker: Worker, ends_at: float, out: list[Action]) -> None:
    going = [state.trials[trial_id] for trial_id in sorted(worker.running)]
    going = [trial for trial in going if trial.attempt_state is not AttemptState.STOPPING]
    for trial in going:
        trial.attempt_state = AttemptState.STOPPING
        trial.gives_way = True
        state.dirty[trial.id] = None
        out.append(stop_of(state, trial))
    if going:
        left_s = max(0.0, ends_at - state.now)
        many = "1 trial goes" if len(going) == 1 else f"{len(going)} trials go"
        text = f"the place of worker {worker.id} ends in {left_s:.0f} s: {many} on elsewhere"
        out.append(ReportWorker(worker.id, text))
