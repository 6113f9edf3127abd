"""For Ray Tune: a sampler that learns (TPE), and trials that end early where others are better."""

import time

from ray import tune
from ray.tune.schedulers import MedianStoppingRule
from ray.tune.search import ConcurrencyLimiter
from ray.tune.search.optuna import OptunaSearch


def trial(parameters):
    for step in range(100):
        loss = 1 / (0.1 + parameters["width"] * step / 100) + parameters["height"] * 0.1
        tune.report({"loss": loss})
        time.sleep(0.005)


tuner = tune.Tuner(
    trial,
    param_space={
        "width": tune.uniform(0, 20),
        "height": tune.uniform(-100, 100),
        "activation": tune.choice(["relu", "tanh"]),
    },
    tune_config=tune.TuneConfig(
        metric="loss",
        mode="min",
        search_alg=ConcurrencyLimiter(OptunaSearch(), max_concurrent=4),
        scheduler=MedianStoppingRule(),
        num_samples=40,
    ),
)
best = tuner.fit().get_best_result()
print(best.metrics["loss"], best.config)
