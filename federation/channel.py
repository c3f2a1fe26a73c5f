"""The channel between clients and server: the one way across, and the ledger of every byte.

Payloads are dictionaries of tensors. They are encoded as safetensors, counted in that form, and decoded again on
the other side, so that nothing is shared by accident and no estimate stands in for a size. On the `meta` device,
where `plan` runs, the same size is computed from shapes and dtypes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import safetensors.torch
import torch

from federation.costs import active_meter

PAYLOADS = frozenset({"parameters", "gradients", "logits", "attention", "features", "images", "discriminator-outputs", "labels"})
"""What may cross. A class list or a count of labels is `labels`."""

_DTYPES = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16",
    torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL",
}  # fmt: skip
_ALIGNMENT_ORDER = ("I64", "F64", "F32", "I32", "BF16", "F16", "I16", "I8", "U8", "BOOL")


@dataclass(frozen=True)
class Transfer:
    """A message; in the ledger, all messages of one kind between one client and the server in one round."""

    round: int
    direction: str
    """`up` (client to server) or `down`."""
    kind: str
    client: int
    bytes: int
    messages: int = 1


def encoded_size(tensors: Mapping[str, torch.Tensor]) -> int:
    """Bytes of the safetensors encoding, from names, shapes and dtypes alone.

    Eight bytes of header length, a JSON header padded to a multiple of eight, then the tensors, ordered by dtype
    width and name.
    """
    header: dict[str, object] = {}
    offset = 0
    for name in sorted(tensors, key=lambda n: (_ALIGNMENT_ORDER.index(_DTYPES[tensors[n].dtype]), n)):
        tensor = tensors[name]
        size = tensor.numel() * tensor.element_size()
        entry = {"dtype": _DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [offset, offset + size]}
        header[name] = entry
        offset += size
    length = len(json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode())
    return 8 + -(-length // 8) * 8 + offset


class Channel:
    """Carries payloads and keeps the ledger.

    For contract tests: `inspect` sees every payload, and `deliver` may put another in its place.
    """

    def __init__(
        self,
        inspect: Callable[[Transfer, Mapping[str, torch.Tensor]], None] | None = None,
        deliver: Callable[[Transfer, dict[str, torch.Tensor]], dict[str, torch.Tensor]] | None = None,
    ):
        self.round = 0
        """The round that messages are booked under; a method with rounds sets it."""
        self._booked: dict[tuple[int, str, str, int], tuple[int, int]] = {}
        self._inspect = inspect
        self._deliver = deliver

    def up(self, client: int, kind: str, tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Send from client to server; returns what the server receives. Raises ValueError for an unknown kind."""
        return self._carry("up", client, kind, tensors)

    def down(self, client: int, kind: str, tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Send from server to client; returns what the client receives. Raises ValueError for an unknown kind."""
        return self._carry("down", client, kind, tensors)

    def _carry(self, direction: str, client: int, kind: str, tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        if kind not in PAYLOADS:
            raise ValueError(f"unknown payload kind {kind!r}; known: {', '.join(sorted(PAYLOADS))}")
        if any(tensor.is_meta for tensor in tensors.values()):
            size, received = encoded_size(tensors), dict(tensors)
        else:
            encoded = safetensors.torch.save(
                {name: t.detach().cpu().clone(memory_format=torch.contiguous_format) for name, t in tensors.items()}
            )
            size, decoded = len(encoded), safetensors.torch.load(encoded)
            received = {name: decoded[name].to(tensor.device) for name, tensor in tensors.items()}
        transfer = Transfer(self.round, direction, kind, client, size)
        meter = active_meter()
        self._book(transfer, meter.times if meter is not None else 1)
        if self._inspect is not None:
            self._inspect(transfer, tensors)
        return received if self._deliver is None else self._deliver(transfer, received)

    def _book(self, transfer: Transfer, times: int = 1) -> None:
        key = (transfer.round, transfer.direction, transfer.kind, transfer.client)
        size, messages = self._booked.get(key, (0, 0))
        self._booked[key] = (size + times * transfer.bytes, messages + times * transfer.messages)

    def restore(self, ledger: Iterable[Transfer]) -> None:
        """Put the ledger of an earlier run, whose outcome is used now, in place of this one."""
        self._booked.clear()
        for transfer in ledger:
            self._book(transfer)

    @property
    def ledger(self) -> list[Transfer]:
        """Everything that crossed, by round, direction, kind and client, in the order of first messages."""
        return [Transfer(*key, size, messages) for key, (size, messages) in self._booked.items()]

    def total(self, direction: str) -> int:
        """Bytes in one direction over all clients and rounds."""
        return sum(t.bytes for t in self.ledger if t.direction == direction)

    def by_kind(self) -> dict[str, int]:
        """Bytes per `direction/kind`."""
        totals: dict[str, int] = {}
        for t in self.ledger:
            name = f"{t.direction}/{t.kind}"
            totals[name] = totals.get(name, 0) + t.bytes
        return dict(sorted(totals.items()))
