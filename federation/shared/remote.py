"""Clients as differentiable functions of images: what crosses the channel when a server learns
through them.

The server sends images down and gets outputs up. When it differentiates a loss of these outputs
with respect to the images, the loss's gradients with respect to the outputs go down and those with
respect to the images come up. The client's networks never leave it.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from fedtables.federation.channel import Channel

Answer = Callable[[torch.Tensor], dict[str, torch.Tensor]]
"""Runs on the client: images (n, c, h, w) to outputs by payload kind, for example logits (n,
classes)."""


class _Ask(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        images: torch.Tensor,
        channel: Channel,
        client: int,
        answer: Answer,
        kinds: Sequence[str],
    ) -> tuple[torch.Tensor, ...]:
        received = channel.down(client, "images", {"images": images})["images"].requires_grad_(
            images.requires_grad
        )
        with torch.enable_grad():
            said = answer(received)
        ctx.set_materialize_grads(False)  # a loss that ignores an output sends nothing about it
        ctx.client_side = received, [said[kind] for kind in kinds]
        ctx.link = channel, client
        return tuple(
            channel.up(client, kind, {"outputs": said[kind].detach()})["outputs"] for kind in kinds
        )

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        (received, said), (channel, client) = ctx.client_side, ctx.link
        about = {str(i): gradient for i, gradient in enumerate(gradients) if gradient is not None}
        arrived = channel.down(client, "gradients", about)
        outputs = [said[int(i)] for i in about]
        (own,) = torch.autograd.grad(outputs, received, [arrived[i] for i in about])
        sent = channel.up(client, "gradients", {"images": own})["images"]
        return sent, None, None, None, None


def ask(
    channel: Channel,
    client: int,
    images: torch.Tensor,
    answer: Answer,
    kinds: Sequence[str],
) -> tuple[torch.Tensor, ...]:
    """The client's outputs of each of `kinds` for the server's `images`, differentiable with
    respect to the images.

    Every crossing is in the ledger: images down and outputs up; in the backward pass, gradients
    down and up.
    """
    outputs: tuple[torch.Tensor, ...] = _Ask.apply(images, channel, client, answer, tuple(kinds))
    return outputs
