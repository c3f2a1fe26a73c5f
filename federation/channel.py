"""The channel between clients and server: the one way across, and the ledger of every byte.

Payloads are dictionaries of tensors. They are encoded as safetensors, counted in that form, and
decoded again on the other side, so that nothing is shared by accident and no estimate stands in for
a size. On the `meta` device, where `plan` runs, the same size is computed from shapes and dtypes.
"""

import functools
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import safetensors.torch
import torch

from fedtables.federation.costs import active_meter
from fedtables.federation.memory import Memory

PAYLOADS = frozenset(
    {
        "parameters",
        "gradients",
        "logits",
        "attention",
        "features",
        "images",
        "discriminator-outputs",
        "labels",
        "votes",
        "conditions",
        "losses",
    }
)
"""What may cross. A class list or a count of labels is `labels`; annotations of every pixel, of
which a server makes images, are `conditions`; what a party says of images in a number each is
`losses`."""

_DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
_ALIGNMENT_ORDER = ("I64", "F64", "F32", "I32", "BF16", "F16", "I16", "I8", "U8", "BOOL")


@dataclass(frozen=True)
class Transfer:
    """A message; in the ledger all of one kind, between one client and the server in one round."""

    round: int
    direction: str
    """`up` (client to server) or `down`."""
    kind: str
    client: int
    bytes: int
    messages: int = 1


def _header(tensors: Mapping[str, torch.Tensor]) -> tuple[bytes, list[str], int]:
    """The header of the safetensors encoding, the names in the order of their data, and the data's
    size.

    Eight bytes of length, then JSON padded to a multiple of eight; data are ordered by dtype width
    and name.
    """
    for name, tensor in tensors.items():
        if tensor.dtype not in _DTYPES:
            raise ValueError(
                f"{name} has the type {tensor.dtype}, which does not cross; convert it first"
            )
    return _laid_out(
        tuple((name, tensor.dtype, tuple(tensor.shape)) for name, tensor in tensors.items())
    )


@functools.lru_cache(maxsize=64)  # the same networks cross in every round
def _laid_out(
    facts: tuple[tuple[str, torch.dtype, tuple[int, ...]], ...],
) -> tuple[bytes, list[str], int]:
    entries: dict[str, object] = {}
    offset = 0
    for name, dtype, shape in sorted(
        facts, key=lambda fact: (_ALIGNMENT_ORDER.index(_DTYPES[fact[1]]), fact[0])
    ):
        size = math.prod(shape) * dtype.itemsize
        entries[name] = {
            "dtype": _DTYPES[dtype],
            "shape": list(shape),
            "data_offsets": [offset, offset + size],
        }
        offset += size
    text = json.dumps(entries, separators=(",", ":"), ensure_ascii=False).encode()
    padded = text.ljust(-(-len(text) // 8) * 8)
    return len(padded).to_bytes(8, "little") + padded, list(entries), offset


def encoded_size(tensors: Mapping[str, torch.Tensor]) -> int:
    """Bytes of the safetensors encoding, from names, shapes and dtypes alone."""
    header, _, size = _header(tensors)
    return len(header) + size


def encode(tensors: Mapping[str, torch.Tensor]) -> bytes:
    """The safetensors encoding, byte for byte that of the library, whose own writer takes three
    times as long.

    A network has many small tensors, and every client's crosses twice a round. The library decodes,
    and so checks it.
    """
    header, names, _ = _header(tensors)
    host = _on_host(tensors)
    return b"".join([header, *(raw_bytes(host[name]).numpy().data for name in names)])


def raw_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of a tensor, uint8 (n,), in the order of its elements."""
    # Not reshape: a tensor of at most one element counts as contiguous whatever its stride, and
    # keeps it.
    return tensor.contiguous().as_strided((tensor.numel(),), (1,)).view(torch.uint8)


def _on_host(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The tensors in main memory; copies from a GPU are queued together and waited for once."""
    tensors = dict(tensors)
    host = {
        name: tensor.detach().to("cpu", non_blocking=tensor.is_cuda)
        for name, tensor in tensors.items()
    }
    for device in {tensor.device for tensor in tensors.values() if tensor.is_cuda}:
        torch.cuda.current_stream(device).synchronize()
    return host


class Packed(dict[str, torch.Tensor]):
    """A message for several clients, which is encoded once: as it is when the first one gets it."""

    @functools.cached_property
    def encoded(self) -> bytes:
        """The safetensors encoding."""
        return encode(self)


class Channel:
    """Sends messages between clients and server, and keeps the ledger of every byte.

    A message is a dictionary of tensors. It is encoded as safetensors, counted, and decoded.
    `deliver` sees every message and may replace it; contract tests use it.
    """

    def __init__(
        self,
        deliver: Callable[
            [Transfer, dict[str, torch.Tensor]], dict[str, torch.Tensor]
        ] = lambda transfer, received: received,
    ):
        self.round = 0
        """The current round. Messages are booked under it."""
        self.booked: dict[tuple[int, str, str, int], tuple[int, int]] = {}
        """Bytes and messages by round, direction, kind and client."""
        self.deliver = deliver

    def up(
        self, client: int, kind: str, tensors: Mapping[str, torch.Tensor]
    ) -> dict[str, torch.Tensor]:
        """Send from a client to the server.

        Args:
            client: index of the client.
            kind: one of `PAYLOADS`.
            tensors: the message.

        Returns:
            What arrives, under the same names.

        Raises:
            ValueError: the kind is unknown, or a tensor has a type that cannot be sent.
        """
        return self._carry("up", client, kind, tensors)

    def down(
        self, client: int, kind: str, tensors: Mapping[str, torch.Tensor]
    ) -> dict[str, torch.Tensor]:
        """Send from the server to a client, as `up` does."""
        return self._carry("down", client, kind, tensors)

    def _carry(
        self, direction: str, client: int, kind: str, tensors: Mapping[str, torch.Tensor]
    ) -> dict[str, torch.Tensor]:
        if kind not in PAYLOADS:
            raise ValueError(f"unknown payload kind {kind!r}; known: {', '.join(sorted(PAYLOADS))}")
        packed = tensors if isinstance(tensors, Packed) else Packed(tensors)  # read once if stored
        tensors = dict(packed)
        if any(tensor.is_meta for tensor in tensors.values()):
            size, received = encoded_size(tensors), tensors
        else:
            size, decoded = len(packed.encoded), safetensors.torch.load(packed.encoded)
            received = {
                name: decoded[name].to(tensor.device, non_blocking=True)
                for name, tensor in tensors.items()
            }
        transfer = Transfer(self.round, direction, kind, client, size)
        meter = active_meter()
        if meter is not None:
            meter.need(Memory(0, 2 * size))  # as it is encoded, and decoded
        self.book(transfer, meter.times if meter is not None else 1)
        return self.deliver(transfer, received)

    def book(self, transfer: Transfer, times: int = 1) -> None:
        """Add a message to the ledger, `times` times, without sending it."""
        key = (transfer.round, transfer.direction, transfer.kind, transfer.client)
        size, messages = self.booked.get(key, (0, 0))
        self.booked[key] = (size + times * transfer.bytes, messages + times * transfer.messages)

    def state_dict(self) -> list[tuple[Any, ...]]:
        """The ledger as plain values."""
        return [astuple(transfer) for transfer in self.ledger]

    def load_state_dict(self, ledger: Iterable[Sequence[Any]]) -> None:
        """Replace the ledger by that of an earlier run."""
        self.booked.clear()
        for entry in ledger:
            self.book(Transfer(*entry))

    @property
    def ledger(self) -> list[Transfer]:
        """All messages, by round, direction, kind and client."""
        return [Transfer(*key, size, messages) for key, (size, messages) in self.booked.items()]

    def total(self, direction: str) -> int:
        """Bytes in one direction (`up` or `down`), over all clients and rounds."""
        return sum(t.bytes for t in self.ledger if t.direction == direction)

    def by_kind(self) -> dict[str, int]:
        """Bytes by `direction/kind`, such as `up/parameters`."""
        totals: dict[str, int] = {}
        for t in self.ledger:
            name = f"{t.direction}/{t.kind}"
            totals[name] = totals.get(name, 0) + t.bytes
        return dict(sorted(totals.items()))
