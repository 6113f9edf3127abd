"""A trial that goes on from its parent's weights, kept where its tuner says."""

import json
import os

import nni


def main():
    params = nni.get_next_parameter()
    weights = [0.0]
    if params["restore_dir"] is not None:
        with open(os.path.join(params["restore_dir"], "weights.json")) as file:
            weights = json.load(file)
    weights = [one + 1.0 for one in weights]
    os.makedirs(params["save_dir"], exist_ok=True)
    with open(os.path.join(params["save_dir"], "weights.json"), "w") as file:
        json.dump(weights, file)
    nni.report_final_result(weights[0])


if __name__ == "__main__":
    main()
