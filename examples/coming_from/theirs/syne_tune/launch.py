"""For Syne Tune: the search; what one trial does is in train.py."""

from syne_tune import StoppingCriterion, Tuner
from syne_tune.backend import LocalBackend
from syne_tune.config_space import loguniform, uniform
from syne_tune.experiments import load_experiment
from syne_tune.optimizer.baselines import ASHA

space = {"lr": loguniform(1e-4, 1e-1), "momentum": uniform(0.1, 0.9), "epochs": 9}
tuner = Tuner(
    trial_backend=LocalBackend(entry_point="train.py"),
    scheduler=ASHA(space, metric="accuracy", time_attr="epoch", max_t=9, do_minimize=False),
    stop_criterion=StoppingCriterion(max_num_trials_finished=20),
    n_workers=2,
)
tuner.run()
print(load_experiment(tuner.name).best_config())
