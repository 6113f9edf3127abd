"""For NNI: the search; what one trial does is in model.py."""

from nni.experiment import Experiment

experiment = Experiment("local")
experiment.config.trial_command = "python model.py"
experiment.config.trial_code_directory = "."
experiment.config.search_space = {
    "features": {"_type": "choice", "_value": [128, 256, 512, 1024]},
    "lr": {"_type": "loguniform", "_value": [0.0001, 0.1]},
    "momentum": {"_type": "uniform", "_value": [0, 1]},
}
experiment.config.tuner.name = "TPE"
experiment.config.tuner.class_args = {"optimize_mode": "maximize"}
experiment.config.max_trial_number = 10
experiment.config.trial_concurrency = 2
experiment.run(8080)
best = max(experiment.export_data(), key=lambda each: each.value)
print(best.value, best.parameter)
experiment.stop()
