"""A trial written for NNI: how far does gradient descent get on a bent valley?"""

import nni

DEFAULTS = {"rate": 0.1, "steps": 20, "rule": {"_name": "plain"}}


def slope(x, y):
    return 2 * (x - 1) + 40 * x * (x * x - y), 20 * (y - x * x)


def height(x, y):
    return (x - 1) ** 2 + 10 * (x * x - y) ** 2


def main():
    params = dict(DEFAULTS)
    params.update(nni.get_next_parameter())
    beta = params["rule"].get("beta", 0.0)
    x, y, vx, vy = -0.5, 1.0, 0.0, 0.0
    for step in range(int(params["steps"])):
        dx, dy = slope(x, y)
        vx, vy = beta * vx - 0.02 * params["rate"] * dx, beta * vy - 0.02 * params["rate"] * dy
        x, y = x + vx, y + vy
        if step % 10 == 0:
            nni.report_intermediate_result(height(x, y))
    nni.report_final_result({"default": height(x, y), "end": [x, y]})


if __name__ == "__main__":
    main()
