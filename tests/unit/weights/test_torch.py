"""Torch: modules, optimisers, rare types; resuming equals never having stopped."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from torch import nn  # noqa: E402  (after the skip)

from trial_runtime.errors import CorruptWeights, WeightsError  # noqa: E402
from trial_runtime.weights import export, load, published_digest, save  # noqa: E402


def network(width: int = 8, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Linear(4, width), nn.BatchNorm1d(width), nn.Dropout(0.5), nn.Linear(width, 2)
    )


class Training:
    """A run with everything that has a state: Adam, a scheduler, dropout, shuffling."""

    def __init__(self) -> None:
        self.model = network()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-2, amsgrad=True)
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, max_lr=0.1, total_steps=50
        )
        self.plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(self.optimizer, patience=1)
        self.step = 0

    def train(self, steps: int) -> list[float]:
        losses = []
        for _ in range(steps):
            self.step += 1
            batch = torch.randn(16, 4)
            target = torch.from_numpy(np.random.rand(16, 2).astype(np.float32))
            loss = (self.model(batch) - target).square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.scheduler.step()
            self.plateau.step(loss.item())
            losses.append(loss.item())
        return losses

    def state(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "optimizer": self.optimizer,
            "scheduler": self.scheduler.state_dict(),
            "plateau": self.plateau,
            "torch": torch.get_rng_state(),
            "numpy": np.random.get_state(),
            "step": self.step,
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        self.plateau.load_state_dict(state["plateau"])
        torch.set_rng_state(state["torch"])
        np.random.set_state(state["numpy"])
        self.step = state["step"]


def test_resuming_equals_never_having_stopped(root: Path) -> None:
    torch.manual_seed(1)
    np.random.seed(1)
    straight = Training()
    straight.train(7)
    published = save(straight.state(), root / "1")
    expected = straight.train(9)

    torch.manual_seed(99)
    np.random.seed(99)
    resumed = Training()
    resumed.train(2)  # whatever it did before is forgotten
    resumed.restore(load(root / "1", digest=published.digest))
    assert resumed.train(9) == expected
    for a, b in zip(
        straight.model.state_dict().values(), resumed.model.state_dict().values(), strict=True
    ):
        assert torch.equal(a, b)
    assert resumed.scheduler.get_last_lr() == straight.scheduler.get_last_lr()


def test_a_module_is_its_state_dict(root: Path) -> None:
    model = network()
    save(model, root / "1")
    back = load(root / "1")
    assert type(back) is OrderedDict
    assert back._metadata == model.state_dict()._metadata
    other = network(seed=5)
    other.load_state_dict(back)
    assert torch.equal(other[0].weight, model[0].weight)


def test_parameters_are_filled_in_place(root: Path) -> None:
    model = network()
    save({"model": model, "step": 1}, root / "1")
    other = network(seed=5)
    first = other[0].weight
    version = first._version
    report = load(root / "1", other, strict=False)
    assert report.complete
    assert report.key == "model"
    assert other[0].weight is first
    assert torch.equal(first, model[0].weight)
    assert first.requires_grad
    assert first._version > version  # autograd notices that saved values are no longer those


def test_a_wider_child_starts_from_its_parents_corner(root: Path) -> None:
    parent, child = network(8), network(12, seed=3)
    own = child[0].weight.detach().clone()
    save(parent, root / "1")
    report = load(root / "1", child, resize="overlap")
    assert {r.name for r in report.reshaped if r.copied} >= {"0.weight", "3.weight"}
    assert torch.equal(child[0].weight[:8], parent[0].weight)
    assert torch.equal(child[0].weight[8:], own[8:])
    assert torch.equal(child[3].weight[:, :8], parent[3].weight)


def _types() -> list[Any]:
    names = [
        "float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
        "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "int64", "int32", "int16",
        "int8", "uint8", "uint16", "uint32", "uint64", "bool", "complex64", "complex128",
    ]  # fmt: skip
    return [getattr(torch, name) for name in names if hasattr(torch, name)]


@pytest.mark.parametrize("dtype", _types(), ids=str)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)], ids=str)
def test_every_type_and_shape(root: Path, dtype: Any, shape: tuple[int, ...]) -> None:
    count = int(np.prod(shape)) * dtype.itemsize
    raw = torch.arange(count, dtype=torch.uint8) % 2
    tensor = raw.view(dtype).reshape(shape) if count else torch.empty(shape, dtype=dtype)
    save({"pad": torch.ones(1, dtype=torch.uint8), "t": tensor}, root / "1")
    back = load(root / "1")["t"]
    assert (back.dtype, back.shape) == (tensor.dtype, tensor.shape)
    into = {"t": torch.zeros(count, dtype=torch.uint8).view(dtype).reshape(shape)}
    assert load(root / "1", into).loaded == ("t",)
    for other in (back, into["t"]):
        if count:
            assert torch.equal(other.reshape(-1).view(torch.uint8), raw)


def test_views_keep_their_values(root: Path) -> None:
    base = torch.arange(24.0).reshape(4, 6)
    state = {
        "t": base.T,
        "cut": base[::2, 1::3],
        "wide": torch.ones(1).expand(1000),
        "conj": torch.tensor([1 + 2j]).conj(),
        "last": torch.ones(2, 3, 4, 4).to(memory_format=torch.channels_last),
    }
    save(state, root / "1")
    for name, tensor in load(root / "1").items():
        assert torch.equal(tensor, state[name])
    into = {"t": torch.zeros(4, 6).T, "conj": torch.zeros(1, dtype=torch.complex64).conj()}
    load(root / "1", into)
    assert torch.equal(into["t"], base.T)
    assert torch.equal(into["conj"], state["conj"])


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(50, 8)
        self.head = nn.Linear(8, 50, bias=False)
        self.head.weight = self.embed.weight


def test_tied_tensors_are_stored_once_and_tied_again(root: Path, tmp_path: Path) -> None:
    model = Tied()
    published = save(model, root / "1")
    assert published.bytes_total == 50 * 8 * 4
    back = load(root / "1")
    assert back["embed.weight"].data_ptr() == back["head.weight"].data_ptr()
    other = Tied()
    assert load(root / "1", other, strict=True).complete
    assert other.head.weight is other.embed.weight
    assert torch.equal(other.embed.weight, model.embed.weight)
    loose = Tied()
    loose.head.weight = nn.Parameter(torch.zeros(50, 8))
    load(root / "1", loose)
    assert torch.equal(loose.head.weight, loose.embed.weight)
    from safetensors.torch import load_file

    Tied().load_state_dict(load_file(export(root / "1", tmp_path / "x.safetensors").path))


SQUARE = torch.arange(16.0).reshape(4, 4)
COMPLEX = torch.tensor([[1 + 2j, 3 - 4j]])
ONE_ADDRESS: dict[str, tuple[Any, Any]] = {
    "transposed": (SQUARE, SQUARE.T),
    "other steps": (SQUARE[:2], SQUARE[::2]),
    "expanded": (SQUARE[0], SQUARE[0, :1].expand(4)),
    "another shape": (SQUARE, SQUARE.reshape(2, 8)),
    "a part": (SQUARE, SQUARE[:3]),
    "another type": (SQUARE, SQUARE.view(torch.int32)),
    "conjugated": (COMPLEX, COMPLEX.conj()),
    "negated": (COMPLEX.imag, COMPLEX.conj().imag),
    "of numpy": (SQUARE, SQUARE.numpy()),
    "of numpy, transposed": (SQUARE.numpy(), SQUARE.numpy().T),
    "of numpy, other steps": (SQUARE.numpy()[:2], SQUARE.numpy()[::2]),
    "of numpy, another shape": (SQUARE.numpy(), SQUARE.numpy().reshape(2, 8)),
    "of numpy, a part": (SQUARE.numpy(), SQUARE.numpy()[:3]),
    "of numpy, another type": (SQUARE.numpy(), SQUARE.numpy().view(np.int32)),
    "of numpy, another byte order": (SQUARE.numpy(), SQUARE.numpy().view(">f4")),
    "empty": (SQUARE[:0], SQUARE[:0]),
    "of numpy, empty": (SQUARE.numpy()[:0], SQUARE.numpy()[:0]),
}


@pytest.mark.parametrize("how", ONE_ADDRESS)
@pytest.mark.parametrize("turned", [False, True], ids=["", "the other way round"])
def test_what_only_begins_at_one_address_is_not_tied(root: Path, how: str, turned: bool) -> None:
    """An encoder and a decoder may share a square matrix, one of them transposed. Mutation: one of
    the two is stored for both, and each child gets it untransposed, without an error."""
    one, other = reversed(ONE_ADDRESS[how]) if turned else ONE_ADDRESS[how]
    assert address(one) == address(other)
    save({"one": one, "other": other}, root / "1")
    for verify in (False, True):
        back = load(root / "1", verify=verify)
        for name, tensor in (("one", one), ("other", other)):
            assert type(back[name]) is type(tensor)
            np.testing.assert_array_equal(np.asarray(back[name]), plain(tensor))
        assert back["one"] is not back["other"]


def address(tensor: Any) -> int:
    if torch.is_tensor(tensor):
        return int(tensor.data_ptr())
    return int(tensor.__array_interface__["data"][0])


def plain(tensor: Any) -> Any:
    """Its values, laid out by torch or numpy themselves."""
    if torch.is_tensor(tensor):
        return tensor.resolve_conj().resolve_neg().clone().numpy()
    return tensor


def test_loaded_tensors_can_be_trained_and_the_file_stays(root: Path) -> None:
    save({"w": torch.zeros(10)}, root / "1")
    first = load(root / "1")["w"].requires_grad_()
    (first - 1).square().sum().backward()
    with torch.no_grad():
        first.sub_(first.grad)
    assert load(root / "1")["w"].abs().sum() == 0


def test_values_are_converted_between_float_types_and_libraries(root: Path) -> None:
    save({"w": torch.full((3,), 1.5, dtype=torch.bfloat16), "n": np.ones(3)}, root / "1")
    into = {"w": torch.zeros(3), "n": torch.zeros(3, dtype=torch.float64)}
    report = load(root / "1", into)
    assert report.converted == ("w",)
    assert into["w"].tolist() == [1.5] * 3
    assert into["n"].tolist() == [1.0] * 3
    assert type(load(root / "1", framework="torch")["n"]) is torch.Tensor


def test_numpy_has_no_bfloat16_and_says_so(root: Path) -> None:
    save({"w": torch.ones(3, dtype=torch.bfloat16), "ok": torch.ones(2)}, root / "1")
    with pytest.raises(WeightsError, match="BF16") as caught:
        load(root / "1", framework="numpy")
    assert "'w'" in caught.value.where
    assert load(root / "1", names="ok", framework="numpy")["ok"].tolist() == [1.0, 1.0]
    into = {"w": np.zeros(3, np.float32), "ok": np.zeros(2, np.float32)}
    with pytest.raises(WeightsError, match="BF16"):
        load(root / "1", into)
    assert not into["ok"].any()


@pytest.mark.parametrize(
    "tensor",
    [torch.zeros(2, device="meta"), torch.eye(2).to_sparse()],
    ids=["meta", "sparse"],
)
def test_tensors_without_plain_bytes_are_refused(root: Path, tensor: Any) -> None:
    with pytest.raises(WeightsError, match="cannot be stored"):
        save({"t": tensor}, root / "1")


def test_an_optimiser_is_not_loaded_into(root: Path) -> None:
    training = Training()
    save(training.state(), root / "1")
    with pytest.raises(WeightsError, match="AdamW"):
        load(root / "1", {"optimizer": training.optimizer})
    assert load(root / "1", key="optimizer")["param_groups"][0]["amsgrad"] is True


def test_sizes_devices_and_dtypes(root: Path) -> None:
    state = {"s": torch.Size([1, 2]), "d": torch.device("cpu"), "t": torch.bfloat16}
    save(state, root / "1")
    back = load(root / "1")
    assert back == state
    assert type(back["s"]) is torch.Size


def test_files_of_torch_save_are_read(root: Path) -> None:
    model = network()
    torch.save({"model": model.state_dict(), "step": 3}, root / "plain.pt")
    other = network(seed=4)
    digest = published_digest(str(root / "plain.pt")).digest
    report = load(root / "plain.pt", other, digest=digest)
    assert report.complete
    assert torch.equal(other[3].bias, model[3].bias)
    assert load(root / "plain.pt", key="step") == 3
    (root / "folder").mkdir()
    (root / "plain.pt").rename(root / "folder" / "model.pt")
    assert load(root / "folder")["step"] == 3


class Evil:
    def __reduce__(self) -> Any:
        return (print, ("executed",))


def test_a_pickle_that_runs_code_is_refused(root: Path, capsys: Any) -> None:
    torch.save({"w": torch.ones(1), "x": Evil()}, root / "evil.pt")
    with pytest.raises(WeightsError, match="not read"):
        load(root / "evil.pt")
    assert "executed" not in capsys.readouterr().out


@pytest.mark.parametrize("keep", [0, 10, 500])
def test_a_truncated_torch_file(root: Path, keep: int) -> None:
    torch.save(network().state_dict(), root / "cut.pt")
    raw = (root / "cut.pt").read_bytes()
    (root / "cut.pt").write_bytes(raw[:keep])
    with pytest.raises((CorruptWeights, WeightsError)):
        load(root / "cut.pt")
