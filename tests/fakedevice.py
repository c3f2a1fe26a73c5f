"""A device that is not there: the whole of a fit, followed by shapes and devices alone, on any
build of torch.

`FakeTensorMode` gives tensors that know where they would be and have no content; an operation that
mixes devices raises what it would raise on a GPU. Their device is a backend in Python, which
autograd takes for a real one. What they lack for a whole fit is added here: values where a program
asks for them (always 1), generators, and bytes for what is encoded (zeros). And it looks for what
would be another number in every run: draws that nobody seeded, and operations that CUDA has in no
other form.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only
from torch.utils.backend_registration import (
    _DummyBackendModule,
    _setup_privateuseone_for_python_backend,
)

from fedtables.federation import snapshots
from fedtables.federation.inside.setup import Streams

aten = torch.ops.aten
ROOT = Path(__file__).resolve().parent.parent
HERE = Path(__file__).resolve()
KIND = "absent"
DEVICE = f"{KIND}:0"


class WrongDeviceError(RuntimeError):
    """Something is not on the device where it is used."""


class UnrepeatableError(RuntimeError):
    """Something would not give the same numbers again."""


UNREPEATABLE = {
    aten._adaptive_avg_pool2d_backward.default,
    aten.adaptive_max_pool2d_backward.default,
    aten.grid_sampler_2d_backward.default,
    aten.upsample_bilinear2d_backward.default,
    aten.upsample_bicubic2d_backward.default,
    aten.reflection_pad2d_backward.default,
    aten.nll_loss2d_forward.default,
    aten.median.dim,
    aten.histc.default,
}
"""Of the operations of which CUDA has no deterministic form (`torch.use_deterministic_algorithms`),
those on images."""


class Watch(TorchDispatchMode):
    """Above `FakeTensorMode`: answers what has no answer without content, and looks where it does
    not look.
    """

    def __init__(self) -> None:
        super().__init__()
        self.syncs: Counter[str] = Counter()
        """How often the host waited for the device, or copied to it, by the line of ours that
        asked."""
        self.seeded = False
        """Whether the device's own generator, from which dropout draws, has been seeded."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in (aten._local_scalar_dense.default, aten.item.default, aten.is_nonzero.default):
            return self.value(args[0], func)
        if func is aten.equal.default:
            self.note("equal")
            return True
        if func in (
            aten.index.Tensor,
            aten.index_put_.default,
            aten.index_put.default,
            aten._index_put_impl_.default,
        ):
            args = (args[0], self.indices(args[0], args[1]), *args[2:])
        if func is aten.nonzero.default:
            self.note("nonzero")
            return args[0].new_zeros(
                (args[0].numel(), args[0].dim()), dtype=torch.int64
            )  # as if all were chosen
        if func is aten.masked_select.default:
            self.note("masked_select")
            return torch.where(args[1], args[0], args[0]).flatten()
        if func is aten.bincount.default:
            self.note("bincount")
            counted, _, least = args  # as if no number were higher
            return counted.new_zeros(least)
        if func in (
            aten._fused_adam_.tensor_lr,
            aten._fused_sgd_.tensor_lr,
            aten._fused_sgd_.default,
        ):
            return None  # they change weights and state in place
        if func is aten._unique2.default:
            self.note("unique")
            whole = torch.zeros_like(args[0], dtype=torch.int64)
            return args[0].flatten().clone(), whole, whole.flatten()
        leaves = tree_leaves((args, kwargs))
        sources = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        if any(isinstance(leaf, torch.device) and leaf.type != "cpu" for leaf in leaves):
            for source in sources:
                if isinstance(source, FakeTensor):
                    source.constant = None  # or a number known on the CPU would really be sent
        if func in UNREPEATABLE and any(source.device.type != "cpu" for source in sources):
            raise UnrepeatableError(f"{func} is not the same in every run on CUDA")
        out = func(*args, **kwargs)
        if (
            torch.Tag.nondeterministic_seeded in func.tags
            and kwargs.get("generator") is None
            and not self.seeded
        ):
            drawn = [
                leaf.device.type for leaf in tree_leaves(out) if isinstance(leaf, torch.Tensor)
            ]
            if KIND in drawn:
                raise UnrepeatableError(
                    f"{func} draws from the device's own generator, which nobody has seeded"
                )
        if func is aten.copy_.default:
            self.note_copy(sources[1], sources[0])
        elif len(sources) == 1 and isinstance(out, torch.Tensor):
            self.note_copy(sources[0], out)
        return out

    def note_copy(self, source: torch.Tensor, target: torch.Tensor) -> None:
        if source.device.type != target.device.type:
            self.note(f"{source.device.type} to {target.device.type}")

    def value(self, tensor: torch.Tensor, func: Any) -> Any:
        """Of a tensor with one entry: 1, which is true, finite and in [0, 1]; the entry itself if
        it is known on the CPU.
        """
        if tensor.device.type == "cpu" and getattr(tensor, "constant", None) is not None:
            return func(tensor)
        if tensor.device.type != "cpu":
            self.note("item")
        return True if tensor.dtype is torch.bool else 1.0 if tensor.is_floating_point() else 1

    def indices(
        self, tensor: torch.Tensor, indices: Sequence[torch.Tensor | None]
    ) -> list[torch.Tensor | None]:
        """Indices on the tensor's own device: torch takes others as well, and copies them while the
        device waits.

        A mask becomes the indices of all that it covers.
        """
        found: list[torch.Tensor | None] = []
        for index in indices:
            if index is None:
                found.append(None)
                continue
            if index.device != tensor.device:
                raise WrongDeviceError(
                    f"a tensor on {tensor.device} is indexed with one on {index.device}"
                )
            if index.dtype in (torch.bool, torch.uint8):
                self.note("mask")
                found.extend(
                    index.new_zeros(index.numel(), dtype=torch.int64) for _ in range(index.dim())
                )
            else:
                found.append(index)
        return found

    def note(self, what: str) -> None:
        frame: Any = sys._getframe(1)
        while frame is not None:
            name = _file_of_ours(frame.f_code.co_filename)
            if name:
                self.syncs[f"{name}:{frame.f_lineno} {what}"] += 1
                return
            frame = frame.f_back


class Draws(TorchFunctionMode):
    """Raises where a generator is not on the device that it draws for; numbers of Python's are put
    on the device as tensors are.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in (torch.tensor, torch.as_tensor) and "device" in kwargs:
            return func(*args, **{**kwargs, "device": "cpu"}).to(kwargs["device"])
        if func is torch.Tensor.new_tensor:
            return torch.tensor(args[1], dtype=args[0].dtype).to(args[0].device)
        indexing = func in (torch.Tensor.__getitem__, torch.Tensor.__setitem__)
        if indexing and isinstance(args[1], list | tuple):
            device = args[0].device
            places = [args[1]] if isinstance(args[1], list) else args[1]
            places = [torch.tensor(p).to(device) if isinstance(p, list) else p for p in places]
            args = (args[0], tuple(places), *args[2:])
        out = func(*args, **kwargs)
        generator = kwargs.get("generator")
        if generator is not None and generator.device.type != out.device.type:
            raise WrongDeviceError(
                f"a tensor on {out.device} is drawn from a generator on {generator.device}"
            )
        return out


class Generator(torch.Generator):
    """A generator on whatever device it is asked for; it draws nothing."""

    def __new__(cls, device: torch.device | str = "cpu") -> Generator:
        made = super().__new__(cls, "cpu")
        made.claimed = torch.device(device)
        return made

    @property
    def device(self) -> torch.device:
        return self.claimed


@functools.cache
def _file_of_ours(name: str) -> str:
    """A file of the suite as a path in the checkout; empty for others, and for this one."""
    path = Path(name).resolve()
    ours = path != HERE and path.is_relative_to(ROOT) and "site-packages" not in path.parts
    return str(path.relative_to(ROOT)) if ours else ""


def content(tensor: torch.Tensor) -> torch.Tensor:
    """Zeros for the entries of a fake tensor on the CPU."""
    if not isinstance(tensor, FakeTensor):
        return tensor
    if tensor.device.type != "cpu":
        raise WrongDeviceError(
            f"the content of a tensor on {tensor.device} is read; call .cpu() first"
        )
    shape, dtype = tuple(tensor.shape), tensor.dtype
    with unset_fake_temporarily():
        return torch.zeros(shape, dtype=dtype)


def move(module: torch.nn.Module, fn: Any, recurse: bool = True) -> torch.nn.Module:
    """`Module._apply`, which for fake tensors swaps parameters and so cannot be called between two
    steps. As for true ones, a parameter that stays on its device stays the same object.
    """
    for child in module.children() if recurse else ():
        move(child, fn)
    for name, parameter in module._parameters.items():
        if parameter is not None:
            moved = fn(parameter.detach())
            if moved.device == parameter.device:
                parameter.data = moved
            else:
                own = torch.nn.Parameter(moved, parameter.requires_grad)
                module._parameters[name] = own
    for name, buffer in module._buffers.items():
        if buffer is not None:
            module._buffers[name] = fn(buffer)
    return module


def outside(mode: FakeTensorMode, function: Any) -> Any:
    """`function` of the content of tensors, outside of the mode."""

    @functools.wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        args = tree_map_only(torch.Tensor, content, args)
        with unset_fake_temporarily():
            found = function(*args, **options)
        return tree_map_only(torch.Tensor, mode.from_tensor, found)

    return called


class Kept:
    """In place of files of snapshots: states as they are."""

    def __init__(self) -> None:
        self.states: list[Any] = []

    def save(self, state: Any, stream: Any) -> None:
        self.states.append(tree_map_only(torch.Tensor, torch.clone, state))
        stream.write(bytes([len(self.states) - 1]))

    def load(self, stream: Any, **options: Any) -> Any:
        return tree_map_only(torch.Tensor, torch.Tensor.cpu, self.states[stream.read()[0]])


class Backend(_DummyBackendModule):
    """What torch asks of a kind of device; generators of it draw nothing."""

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16]

    def get_rng_state(self, *device: Any) -> None:
        pass

    def set_rng_state(self, *state: Any) -> None:
        pass


_setup_privateuseone_for_python_backend(KIND, Backend())
"""For the whole process, and from the start: autograd counts kinds of device when it begins."""


def copied(tensor: torch.Tensor, memo: dict[int, Any]) -> torch.Tensor:
    """A deep copy; torch would copy memory, and what is not there has none."""
    if id(tensor) not in memo:
        copy = tensor.detach().clone()
        made = torch.nn.Parameter(copy) if isinstance(tensor, torch.nn.Parameter) else copy
        memo[id(tensor)] = made.requires_grad_(tensor.requires_grad)
    found: torch.Tensor = memo[id(tensor)]
    return found


@contextlib.contextmanager
def fake_device() -> Iterator[Watch]:
    """Inside, `DEVICE` can be used like a device that is there; no tensor has content."""
    mode, watch, kept = FakeTensorMode(allow_non_fake_inputs=True), Watch(), Kept()
    dropout = Streams.dropout

    @contextlib.contextmanager
    def seeded(streams: Streams, *names: object) -> Iterator[None]:
        before, watch.seeded = watch.seeded, True
        with dropout(streams, *names):
            yield
        watch.seeded = before

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "Generator", Generator)
        patch.setattr(torch.nn.Module, "_apply", move)
        patch.setattr(FakeTensor, "__deepcopy__", copied)
        patch.setattr(torch.Tensor, "numpy", outside(mode, torch.Tensor.numpy))
        patch.setattr(safetensors.torch, "load", outside(mode, safetensors.torch.load))
        patch.setattr(snapshots.torch, "save", kept.save)
        patch.setattr(snapshots.torch, "load", kept.load)
        patch.setattr(Streams, "dropout", seeded)
        repeated = torch.are_deterministic_algorithms_enabled()
        warns = torch.is_deterministic_algorithms_warn_only_enabled()
        torch.use_deterministic_algorithms(True, warn_only=True)  # some operations differ then
        try:
            with mode, watch, Draws():
                yield watch
        finally:
            torch.use_deterministic_algorithms(repeated, warn_only=warns)
