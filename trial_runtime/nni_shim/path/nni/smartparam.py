"""Functions that annotated code calls: each call has a key, by which the parameters have its value.

Code that is run by hand, and was not rewritten, draws at random, as in NNI's standalone mode.
"""

from __future__ import annotations

from typing import Any

from . import parameter_expressions as _drawn
from . import trial

_NOT_REWRITTEN = "this call was not rewritten: write 'useAnnotation: true' into the experiment file"


def _given(key: str) -> Any:
    if trial.get_current_parameter() is None:
        trial.get_next_parameter()
    return trial.get_current_parameter(key)


def choice(*options: Any, name: Any = None, key: Any = None) -> Any:
    """The value of the chosen option; rewritten code passes one dict of options and a key."""
    if key is None:
        return _drawn_by_hand(options)
    return options[0][_given(key)]


def function_choice(*options: Any, name: Any = None, key: Any = None) -> Any:
    """The result of the chosen call; only this one is made."""
    if key is None:
        return _drawn_by_hand(options)()
    return options[0][_given(key)]()


def _drawn_by_hand(options: Any) -> Any:
    if len(options) == 1 and isinstance(options[0], dict):
        options = list(options[0].values())
    return options[_by_hand().randint(len(options))]


def mutable_layer(
    block: str,
    layer: str,
    functions: Any,
    keywords: Any,
    fixed_inputs: Any,
    optional_inputs: Any,
    optional_input_size: Any = 0,
    mode: str = "classic_mode",
    *_more: Any,
) -> Any:
    """The output of the chosen layer on the chosen inputs.

    Args:
        block: the name of the block in the parameters.
        layer: the name of the layer in its block.
        functions: the layers by name.
        keywords: arguments of each layer by name.
        fixed_inputs: inputs that the layer always gets.
        optional_inputs: further inputs by name, of which the parameters choose some.
        optional_input_size: how many may be chosen; not needed here.
        mode: ``classic_mode``, the only one here.
    """
    _must_be_classic(mode)
    parameters = trial.get_current_parameter()
    if parameters is None:
        parameters = trial.get_next_parameter()
    if block in parameters:  # as NNI's tuners say it
        chosen = parameters[block][layer]
        name, inputs = chosen["chosen_layer"], chosen["chosen_inputs"]
    else:
        name = parameters[f"{block}/{layer}/layer_choice"]
        inputs = parameters.get(f"{block}/{layer}/optional_inputs", [])
    picked = [optional_inputs[each] for each in inputs]
    return functions[name]([fixed_inputs, picked], **keywords[name])


def training_update(mode: str = "classic_mode", *_arguments: Any, **_more: Any) -> None:
    """Do nothing: in classic NAS each trial has one architecture from beginning to end."""
    _must_be_classic(mode)


def _must_be_classic(mode: str) -> None:
    if mode != "classic_mode":
        raise NotImplementedError(
            f"NAS mode {mode!r} is not here: classic_mode is, ENAS and SPOS are tuners of bequeath"
        )


def _by_hand() -> Any:
    if trial._is_trial():
        raise RuntimeError(_NOT_REWRITTEN)
    import numpy

    return numpy.random.RandomState()


def _number(function: str) -> Any:
    sampler = getattr(_drawn, function)

    def smart(*numbers: float, name: Any = None, key: Any = None) -> Any:
        if key is None:
            return sampler(*numbers, _by_hand())
        return _given(key)

    smart.__name__ = smart.__qualname__ = function
    smart.__doc__ = "The value that was drawn."
    return smart


randint = _number("randint")
uniform = _number("uniform")
quniform = _number("quniform")
loguniform = _number("loguniform")
qloguniform = _number("qloguniform")
normal = _number("normal")
qnormal = _number("qnormal")
lognormal = _number("lognormal")
qlognormal = _number("qlognormal")
