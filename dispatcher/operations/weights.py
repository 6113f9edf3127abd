"""Operations on the weights of one experiment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from dispatcher.errors import UserError
from dispatcher.operations import answers, tensor_answers
from dispatcher.operations import arguments as given
from dispatcher.operations.operation import Call, NoChoice
from dispatcher.weight_keeper import Policy

if TYPE_CHECKING:
    from dispatcher.experiments.tensor_origins import TensorOrigin
    from dispatcher.experiments.weights import WeightsRemoval
    from dispatcher.weight_keeper import GcPlan


_Answer = TypeVar("_Answer", bound=answers.OperationAnswer)


def use(call: Call, wanted: NoChoice) -> answers.MeasuredWeights:
    """Measure what weights and shared stores take on disk."""
    weights = call.handle.weights
    measured, stores = weights.use()
    beside = {"stores": stores, "unseen": weights.unseen()}
    return _answer(answers.MeasuredWeights, call, measured.to_json() | beside)


def plan(call: Call, wanted: given.SweepWeights) -> answers.WeightsSwept:
    """Say what a sweep would remove."""
    return _swept(call, call.handle.weights.plan(_policy(wanted), wanted.keep_versions))


def sweep(call: Call, wanted: given.SweepWeights) -> answers.WeightsSwept:
    """Remove weights that nothing needs."""

    def confirm(plan: GcPlan) -> None:
        many = f"{len(plan.doomed)} trial{'' if len(plan.doomed) == 1 else 's'}"
        call.context.confirm(f"Remove the weights of {many}, {plan.nbytes / (1 << 20):,.1f} MiB?")

    weights = call.handle.weights
    return _swept(call, weights.remove(confirm, _policy(wanted), wanted.keep_versions))


def _swept(call: Call, removal: WeightsRemoval) -> answers.WeightsSwept:
    beside = {"stores": removal.stores, "unseen": call.handle.weights.unseen()}
    return _answer(answers.WeightsSwept, call, removal.plan.to_json() | beside)


def _answer(kind: type[_Answer], call: Call, values: dict[str, Any]) -> _Answer:
    return msgspec.convert({"experiment": call.handle.id, **values}, kind, str_keys=True)


def _policy(wanted: given.SweepWeights) -> Policy | None:
    if not wanted.keep:
        return None
    word, _, count = wanted.keep.partition(":")
    if count and not count.isdecimal():
        raise UserError(f"{wanted.keep!r} is not POLICY:NUMBER", hint="write it as in best:3")
    return Policy.of(word, int(count) if count else None)


def tensors(call: Call, wanted: given.ListTensors) -> tensor_answers.TrialTensors:
    """Say which tensors of a trial came from whom."""
    found = call.handle.weights.tensors(call.trial)
    changes: dict[str, list[TensorOrigin]] = {}
    ancestors: dict[tuple[int | None, int | None], list[TensorOrigin]] = {}
    groups: dict[str, list[TensorOrigin]] = {}
    for one in found.tensors:
        changes.setdefault(one.change, []).append(one)
        ancestors.setdefault((one.origin, one.generations), []).append(one)
        groups.setdefault(one.group, []).append(one)
    nearest = sorted(ancestors.items(), key=lambda each: (each[0][1] is None, each[0][1] or 0))
    return tensor_answers.TrialTensors(
        experiment=call.handle.id,
        trial=found.trial,
        parent=found.parent,
        why=found.why,
        count=len(found.tensors),
        bytes=sum(one.bytes for one in found.tensors),
        changes={change: _kind(many) for change, many in changes.items()},
        ancestors=[
            tensor_answers.TensorAncestor(*who, len(many), sum(one.bytes for one in many))
            for who, many in nearest
        ],
        groups=[_group(name, many) for name, many in groups.items()],
        tensors=list(found.tensors[: wanted.limit]),
        gone=found.gone,
        notes=found.notes,
    )


def _kind(many: list[TensorOrigin]) -> tensor_answers.TensorsOfKind:
    return tensor_answers.TensorsOfKind(len(many), sum(one.bytes for one in many))


def _group(name: str, many: list[TensorOrigin]) -> tensor_answers.TensorGroup:
    changes = {
        change: _kind([one for one in many if one.change == change])
        for change in dict.fromkeys(one.change.value for one in many)
    }
    origins = tuple(sorted({one.origin for one in many if one.origin is not None}))
    return tensor_answers.TensorGroup(
        name, len(many), sum(one.bytes for one in many), changes, origins[:20]
    )


def versions(call: Call, wanted: given.ListVersions) -> answers.SharedStores:
    """List the versions of shared stores that are there."""
    stores = {
        each.name: {
            "published": each.published,
            "versions": [version.to_json() for version in each.versions],
        }
        for each in call.handle.weights.stores()
        if wanted.store in (None, each.name)
    }
    return _answer(answers.SharedStores, call, {"stores": stores})


def pin(call: Call, wanted: given.PinWeights) -> answers.Pinned:
    """Keep a trial's weights whatever retention says."""
    call.handle.weights.pin(call.trial, wanted.note)
    return answers.Pinned(call.handle.id, call.trial, pinned=True)


def unpin(call: Call, wanted: NoChoice) -> answers.Pinned:
    """Let retention decide on a trial's weights again."""
    call.handle.weights.unpin(call.trial)
    return answers.Pinned(call.handle.id, call.trial, pinned=False)


def export(call: Call, wanted: given.ExportWeights) -> answers.ExportedWeights:
    """Write a trial's weights into one file."""
    written = call.handle.weights.export(call.trial, Path(wanted.file), key=wanted.key)
    return answers.ExportedWeights(
        call.handle.id, call.trial, written.path, written.tensors, written.nbytes
    )
