"""Needs and offers as text: for ``why``, and for what can never run."""

from dispatcher.core.model import Worker
from dispatcher.core.resource_match import suited
from dispatcher.core.resources import Needs, Offer


def needs_text(needs: Needs) -> str:
    """The needs as text: ``8 GPUs of at least 40 GB, 16 CPUs and 1 licence``."""
    parts: list[str] = []
    if needs.gpus:
        parts.append(_gpus(needs))
    if needs.cpus:
        parts.append(_count(needs.cpus, "CPU"))
    if needs.memory_bytes:
        parts.append(f"{_gb(needs.memory_bytes)} of memory")
    parts.extend(f"{amount:g} {name}" for name, amount in needs.custom)
    return joined(parts) or "a slot"


def best_of(needs: Needs, workers: list[Worker]) -> str:
    """The resources of the best of these workers, of the kinds that are needed, as text."""
    known = [worker for worker in workers if worker.known is not None]
    best = max(known, key=lambda worker: _rank(needs, worker))
    assert best.known is not None
    which = "the only one" if len(known) == 1 else "the best"
    return f"{which}, {best.id}, has {_has(needs, best.known)}"


def joined(parts: list[str]) -> str:
    """The parts as text: ``a``, ``a and b``, ``a, b and c``."""
    return " and ".join(part for part in (", ".join(parts[:-1]), *parts[-1:]) if part)


def _rank(needs: Needs, worker: Worker) -> tuple[float, ...]:
    """The rank of a worker: more of what is needed is better, more than is needed is not."""
    has = worker.known or Offer()
    custom = dict(has.custom)
    return (
        float(min(len(suited(needs, has)), needs.devices)),
        min(needs.cpus, needs.cpus if has.cpus is None else has.cpus),
        float(min(needs.memory_bytes, has.memory_bytes or needs.memory_bytes)),
        *(min(amount, custom.get(name, 0.0)) for name, amount in needs.custom),
    )


def _has(needs: Needs, has: Offer) -> str:
    parts: list[str] = []
    if needs.gpus:
        fit = len(suited(needs, has))
        text = _count(fit, "GPU") if fit else "no GPU"
        small = len(suited(Needs(gpus=needs.gpus), has)) > fit
        parts.append(f"{text} of that size" if small else text)
    if needs.cpus and has.cpus is not None:
        parts.append(_count(has.cpus, "CPU"))
    if needs.memory_bytes and has.memory_bytes is not None:
        parts.append(f"{_gb(has.memory_bytes)} of memory")
    custom = dict(has.custom)
    parts.extend(f"{custom.get(name, 0.0):g} {name}" for name, _ in needs.custom)
    return joined(parts)


def _gpus(needs: Needs) -> str:
    text = f"{needs.gpus:g} of a GPU" if needs.gpus < 1 else _count(needs.gpus, "GPU")
    size = f" of at least {_gb(needs.gpu_memory_bytes)}" if needs.gpu_memory_bytes else ""
    return text + size


def _count(number: float, what: str) -> str:
    return f"{number:g} {what}" + ("" if number == 1 else "s")


def _gb(nbytes: int) -> str:
    return f"{nbytes / (1 << 30):.4g} GB" if nbytes >= 1 << 30 else f"{nbytes / (1 << 20):.4g} MB"
