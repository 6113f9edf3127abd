"""Operations on the trained model of one trial."""

from __future__ import annotations

from dispatcher.errors import UserError
from dispatcher.inference.declared import completed
from dispatcher.inference.models import LOAD_S, Models, usual_memory
from dispatcher.inference.process import ModelBounds
from dispatcher.inference.trained import trained
from dispatcher.operations import answers
from dispatcher.operations import arguments as given
from dispatcher.operations.operation import Call, NoChoice
from dispatcher.queries import TrialNotFound


def inputs(call: Call, wanted: NoChoice) -> answers.ModelOffer:
    """Say what a request holds; nothing of the trials' code is run."""
    handle = call.handle
    try:
        model = trained(handle, call.trial)
    except TrialNotFound:
        raise
    except UserError as error:
        return answers.ModelOffer(
            handle.id, call.trial, available=False, why=error.message, hint=error.hint, inputs=None
        )
    declared = model.offer.inputs
    fields = None
    if declared is not None:
        fields = [
            answers.ModelInput(
                name, one.kind, one.label, one.default, one.minimum, one.maximum, one.step,
                one.width, one.height,
            )
            for name, one in declared.items()
        ]  # fmt: skip
    return answers.ModelOffer(handle.id, call.trial, available=True, why="", hint="", inputs=fields)


def infer(call: Call, wanted: given.AskModel) -> answers.ModelAnswered:
    """Ask the model, in a process of its own."""
    context = call.context
    model = trained(call.handle, call.trial)
    request = completed(model.offer.inputs, wanted.request)
    if model.changed_since:
        file = model.offer.module.file.name
        context.note(f"{file} was changed after trial {call.trial} had ended")
    bounds = ModelBounds(context.model_memory or usual_memory(), wanted.timeout_s, LOAD_S)
    if context.models is not None:
        answer, loaded_s = context.models.ask(model, request, bounds)
    else:
        answer, loaded_s = Models().ask(model, request, bounds)
    return answers.ModelAnswered(
        call.handle.id, call.trial, answer.value, answer.took_s, loaded_s, answer.printed
    )
