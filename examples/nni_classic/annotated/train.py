"""A trial whose parameters are annotations: it runs by hand as it is, and tuned as it is."""

import math


def climb(x):
    return x / 2


def creep(x):
    return math.sqrt(x)


def main():
    """@nni.get_next_parameter()"""
    """@nni.variable(nni.choice(1, 2, 4), name=steps)"""
    steps = 2
    """@nni.variable(nni.uniform(1.5, 9.0), name=height)"""
    height = 3.0
    for _ in range(steps):
        """@nni.function_choice(climb(height), creep(height), name=climb)"""
        height = climb(height)
        """@nni.report_intermediate_result(height)"""
    print(f"ended at {height}")
    """@nni.report_final_result(height)"""


if __name__ == "__main__":
    main()
