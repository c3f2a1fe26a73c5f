"""Clients as differentiable functions of images: what crosses the channel when a server learns
through them.

The server sends images down and gets outputs up. When it differentiates a loss of these outputs
with respect to the images, the loss's gradients with respect to the outputs go down and those with
respect to the images come up. The client's networks never leave it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from federation.channel import Channel

Answer = Callable[[torch.Tensor], dict[str, torch.Tensor]]
"""Runs on the client: images (n, c, h, w) to outputs by payload kind, for example logits (n,
classes)."""
Answers = Callable[[Sequence[torch.Tensor]], Sequence[dict[str, torch.Tensor]]]
"""The same of several clients as one computation: what each has received to what each answers."""
Guard = Callable[[torch.Tensor], torch.Tensor]
"""Runs on the client: what becomes of a gradient with respect to images before it leaves (clipping,
noise)."""


class _Ask(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        images: torch.Tensor,
        channel: Channel,
        clients: Sequence[int],
        answers: Answers,
        kinds: Sequence[str],
        guard: Guard | None,
    ) -> tuple[torch.Tensor, ...]:
        received = [
            channel.down(client, "images", {"images": images})["images"].requires_grad_(
                images.requires_grad
            )
            for client in clients
        ]
        with torch.enable_grad():
            said = answers(received)
        ctx.set_materialize_grads(False)  # a loss that ignores an output sends nothing about it
        ctx.client_side = received, [[own[kind] for kind in kinds] for own in said]
        ctx.link = channel, clients, guard
        return tuple(
            channel.up(client, kind, {"outputs": own[kind].detach()})["outputs"]
            for client, own in zip(clients, said, strict=True)
            for kind in kinds
        )

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        (received, said), (channel, clients, guard) = ctx.client_side, ctx.link
        asked, outputs, arrived = [], [], []
        for number, (client, own) in enumerate(zip(clients, said, strict=True)):
            about = dict(enumerate(gradients[number * len(own) : (number + 1) * len(own)]))
            sent = {str(i): gradient for i, gradient in about.items() if gradient is not None}
            if sent:
                came = channel.down(client, "gradients", sent)
                asked.append(number)
                outputs += [own[int(i)] for i in sent]
                arrived += [came[i] for i in sent]
        feedback = torch.autograd.grad(outputs, [received[number] for number in asked], arrived)
        total, *others = (
            channel.up(
                clients[number], "gradients", {"images": guard(own) if guard is not None else own}
            )["images"]
            for number, own in zip(asked, feedback, strict=True)
        )
        return sum(others, start=total), None, None, None, None, None


def ask(
    channel: Channel,
    client: int,
    images: torch.Tensor,
    answer: Answer,
    kinds: Sequence[str],
    guard: Guard | None = None,
) -> tuple[torch.Tensor, ...]:
    """The client's outputs of each of `kinds` for the server's `images`, differentiable with
    respect to the images.

    Every crossing is in the ledger: images down and outputs up; in the backward pass, gradients
    down and up.
    """
    (outputs,) = ask_together(
        channel, [client], images, lambda received: [answer(received[0])], kinds, guard
    )
    return outputs


def ask_together(
    channel: Channel,
    clients: Sequence[int],
    images: torch.Tensor,
    answers: Answers,
    kinds: Sequence[str],
    guard: Guard | None = None,
) -> list[tuple[torch.Tensor, ...]]:
    """What `ask` returns of each of several clients, whose answers are one computation, and so are
    their gradients; in the ledger is the same as of one after another.
    """
    outputs = _Ask.apply(images, channel, clients, answers, tuple(kinds), guard)
    return [outputs[n * len(kinds) : (n + 1) * len(kinds)] for n in range(len(clients))]
