"""What a multi-phase tuner of NNI becomes: each phase of a job is a trial of its own.

Where NNI was asked for more parameters of a running job, a chain that is ready for its next phase
is handed out; where all chains are under way, the answer is "not now".
"""

from nni import NoMoreTrialError
from nni.tuner import Tuner


class PhasesTuner(Tuner):
    def __init__(self, chains=2, phases=3, folder="chains"):
        self.folder = folder
        self.phases = phases
        self.ready = [(chain, 0, None) for chain in range(chains)]  # chain, phase, reward before
        self.under_way = {}

    def generate_parameters(self, parameter_id, **kwargs):
        if not self.ready:
            raise NoMoreTrialError("each chain is in a phase")
        chain, phase, reward = self.ready.pop(0)
        self.under_way[parameter_id] = chain, phase
        step = 1.0 if reward is None else reward / 2  # what NNI's tuner answered to the job
        return {"folder": f"{self.folder}/{chain}", "phase": phase, "step": step}

    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        chain, phase = self.under_way.pop(parameter_id)
        if phase + 1 < self.phases:
            self.ready.append((chain, phase + 1, value))

    def update_search_space(self, search_space):
        pass
