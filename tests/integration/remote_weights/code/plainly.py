"""A trial that keeps its weights by its own means: a file that a child reads, and changes."""

import os


def train(parameters):
    """Count generations in a plain file; spoil the parent's, as a careless trial may."""
    generation = 0
    if "restore_path" in parameters:
        path = os.path.join(parameters["restore_path"], "generation.txt")
        with open(path, "r+") as file:
            generation = int(file.read())
            file.write("spoilt")
    os.makedirs(parameters["save_path"])
    with open(os.path.join(parameters["save_path"], "generation.txt"), "w") as file:
        file.write(str(generation + 1))
    return generation + 1.0
