"""A CUDA device that is not there: the whole of a fit, followed by shapes and devices alone, on any
build of torch.

`FakeTensorMode` gives tensors that know where they would be and have no content; an operation that
mixes devices raises what it would raise on a GPU. What it lacks for a whole fit is added here:
values where a program asks for them (always 1), generators, gradients (autograd's engine wants the
driver), and bytes for what is encoded (zeros). And it looks for what would be another number in
every run: draws that nobody seeded, and operations that CUDA has in no other form.
"""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

aten = torch.ops.aten
ROOT = Path(__file__).resolve().parent.parent
HERE = str(Path(__file__))


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


# -- values and devices --


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
        if func in (aten._fused_adam_.tensor_lr, aten._fused_sgd_.tensor_lr):
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
            raise UnrepeatableError(f"{func} on CUDA is not the same in every run")
        out = func(*args, **kwargs)
        if (
            torch.Tag.nondeterministic_seeded in func.tags
            and kwargs.get("generator") is None
            and not self.seeded
        ):
            drawn = [
                leaf.device.type for leaf in tree_leaves(out) if isinstance(leaf, torch.Tensor)
            ]
            if "cuda" in drawn:
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
            name = frame.f_code.co_filename
            if name != HERE and name.startswith(str(ROOT)) and "site-packages" not in name:
                self.syncs[f"{Path(name).relative_to(ROOT)}:{frame.f_lineno} {what}"] += 1
                return
            frame = frame.f_back


class Draws(TorchFunctionMode):
    """Raises where a generator is not on the device that it draws for."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
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
    steps.

    As for true ones, a parameter stays the same object, so that optimisers keep it.
    """
    for child in module.children() if recurse else ():
        move(child, fn)
    for parameter in module._parameters.values():
        if parameter is not None:
            with torch.no_grad():
                moved = fn(parameter)
            parameter.data = moved
            parameter.fake_device = moved.device
    for name, buffer in module._buffers.items():
        if buffer is not None:
            module._buffers[name] = fn(buffer)
    return module


# -- gradients --


def gradients(
    outputs: Sequence[torch.Tensor],
    seeds: Sequence[torch.Tensor | None],
    create_graph: bool,
    wanted: set[Any] | None = None,
) -> dict[Any, dict[int, torch.Tensor]]:
    """Gradients by the node of the graph and the position of its input; autograd's engine in small.

    Only what leads to the nodes `wanted` is computed, if given. Hooks of tensors are not called.
    """
    found: dict[Any, dict[int, torch.Tensor]] = {}

    def add(node: Any, position: int, gradient: torch.Tensor) -> None:
        about = node._input_metadata[position]
        if gradient.device != about.device:
            raise WrongDeviceError(
                f"{node.name()} gets a gradient on {gradient.device} for a tensor on {about.device}"
            )
        gradient = gradient.sum_to_size(about.shape).to(about.dtype)
        slots = found.setdefault(node, {})
        slots[position] = slots[position] + gradient if position in slots else gradient

    with torch.set_grad_enabled(create_graph):
        edges = [torch.autograd.graph.get_gradient_edge(output) for output in outputs]
        for edge, output, seed in zip(edges, outputs, seeds, strict=True):
            add(edge.node, edge.output_nr, torch.ones_like(output) if seed is None else seed)
        order = in_order([edge.node for edge in edges])
        useful = useful_nodes(order, wanted)
        for node in order:
            if node not in found or not any(then in useful for then, _ in node.next_functions):
                continue
            arguments = [found[node].get(position) for position in range(len(node._input_metadata))]
            given = (
                node.apply(*materialized(node, arguments))
                if hasattr(node, "_forward_cls")
                else node(*arguments)
            )
            given = given if isinstance(given, tuple) else (given,)
            for (then, position), gradient in zip(node.next_functions, given, strict=False):
                if then in useful and gradient is not None:
                    add(then, position, gradient)
    return found


def in_order(roots: Sequence[Any]) -> list[Any]:
    """All nodes behind `roots`, as the engine takes them: the last made first, leaves at the
    end.
    """
    seen: set[Any] = set()
    todo = list(roots)
    while todo:
        node = todo.pop()
        if node not in seen:
            seen.add(node)
            todo.extend(then for then, _ in node.next_functions if then is not None)
    return sorted(
        seen,
        key=lambda node: -1 if hasattr(node, "variable") else node._sequence_nr(),
        reverse=True,
    )


def useful_nodes(order: Sequence[Any], wanted: set[Any] | None) -> set[Any]:
    """Those of the nodes that are wanted or lead to one that is; all if `wanted` is None."""
    if wanted is None:
        return set(order)
    useful: set[Any] = set()
    for node in reversed(order):
        if node in wanted or any(then in useful for then, _ in node.next_functions):
            useful.add(node)
    return useful


def materialized(node: Any, arguments: Sequence[torch.Tensor | None]) -> list[torch.Tensor | None]:
    """Zeros for absent gradients, where a custom function asks for them."""
    if not getattr(node, "materializes", True):
        return list(arguments)
    abouts = node._input_metadata
    return [
        (
            torch.zeros(about.shape, dtype=about.dtype, device=about.device)
            if gradient is None
            else gradient
        )
        for gradient, about in zip(arguments, abouts, strict=True)
    ]


def set_materialize_grads(ctx: Any, value: bool) -> None:
    """`FunctionCtx.set_materialize_grads`, and a note of it that can be read."""
    ctx.materialize_grads = ctx.materializes = value


def as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple | list) else [value]


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """In place of `torch.autograd.backward`."""
    outputs = as_list(tensors)
    seeds = [None] * len(outputs) if grad_tensors is None else as_list(grad_tensors)
    wanted = (
        None
        if inputs is None
        else {torch.autograd.graph.get_gradient_edge(tensor).node for tensor in as_list(inputs)}
    )
    for node, slots in gradients(outputs, seeds, create_graph, wanted).items():
        if hasattr(node, "variable") and (wanted is None or node in wanted):
            leaf = node.variable
            leaf.grad = slots[0] if leaf.grad is None else leaf.grad + slots[0]


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[torch.Tensor | None, ...]:
    """In place of `torch.autograd.grad`."""
    if is_grads_batched:  # one after another
        seeds = zip(*(seed.unbind() for seed in as_list(grad_outputs)), strict=True)
        rows = [
            grad(outputs, inputs, row, retain_graph, create_graph, allow_unused) for row in seeds
        ]
        return tuple(torch.stack(column) for column in zip(*rows, strict=True))
    of, edges = (
        as_list(outputs),
        [torch.autograd.graph.get_gradient_edge(tensor) for tensor in as_list(inputs)],
    )
    seeds = [None] * len(of) if grad_outputs is None else as_list(grad_outputs)
    found = gradients(of, seeds, create_graph, {edge.node for edge in edges})
    answers: list[torch.Tensor | None] = []
    for tensor, edge in zip(as_list(inputs), edges, strict=True):
        answer = found.get(edge.node, {}).get(edge.output_nr)
        if answer is None and materialize_grads:
            answer = torch.zeros_like(tensor)
        if answer is None and not allow_unused:
            raise RuntimeError(
                "one of the differentiated tensors appears to not have been used in the graph"
            )
        answers.append(answer)
    return tuple(answers)


# -- the device --


@contextlib.contextmanager
def fake_cuda() -> Iterator[Watch]:
    """Inside, `cuda` can be used like a device that is there; no tensor has content."""
    mode, watch = FakeTensorMode(allow_non_fake_inputs=True), Watch()
    decode, as_numpy = safetensors.torch.load, torch.Tensor.numpy

    def load(data: bytes) -> dict[str, torch.Tensor]:
        with unset_fake_temporarily():
            return decode(data)

    def numpy(tensor: torch.Tensor, **options: Any) -> np.ndarray:
        with unset_fake_temporarily():
            return as_numpy(content(tensor), **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "Generator", Generator)
        patch.setattr(torch.nn.Module, "_apply", move)
        patch.setattr(torch.autograd, "backward", backward)
        patch.setattr(torch.autograd, "grad", grad)
        patch.setattr(
            torch.autograd.function.FunctionCtx, "set_materialize_grads", set_materialize_grads
        )
        patch.setattr(torch.Tensor, "numpy", numpy)
        patch.setattr(safetensors.torch, "load", load)
        for name in ("synchronize", "get_rng_state"):  # without a driver they only fail
            patch.setattr(torch.cuda, name, lambda *args: None)
        for name, seeded in (
            ("manual_seed", True),
            ("set_rng_state", False),
        ):  # the second at the end of a fork
            patch.setattr(
                torch.cuda, name, lambda *args, seeded=seeded: setattr(watch, "seeded", seeded)
            )
        patch.setattr(torch.cuda, "device", lambda index: contextlib.nullcontext())
        repeated, warns = (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
        )
        torch.use_deterministic_algorithms(
            True, warn_only=True
        )  # as in a run: some operations take another form
        try:
            with mode, watch, Draws():
                yield watch
        finally:
            torch.use_deterministic_algorithms(repeated, warn_only=warns)
