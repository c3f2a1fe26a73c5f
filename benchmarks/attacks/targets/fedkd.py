"""FedKD: a client sends its logits for the public images, once."""

from __future__ import annotations

from torch import Tensor, nn

from benchmarks.attacks.answers import Inquiry, Observed
from federation.client import Client
from federation.federation import Federation
from federation.training.inputs import unit_range
from privacy.attacks.by_name import double
from privacy.attacks.outputs import logits_after
from privacy.attacks.threat import ThreatModel

TABLE = "fediod/table1"
COLUMN = {"dataset": "cifar10", "alpha": "1"}


def observe(inquiry: Inquiry, federation: Federation, client: Client) -> Observed:
    """The client's logits (m, classes) for the public images, as FedKD's one-shot mode sends
    them.
    """
    probes = federation.normalise(unit_range(federation.public.images))
    logits = federation.public_outputs(federation.local_models()[client.index])
    sent = federation.channel.up(client.index, "logits", {"logits": logits})["logits"]
    return _observed(
        double(federation.networks.initial(client.network)).eval(),
        probes.double(),
        inquiry.threat,
        sent,
    )


def _observed(model: nn.Module, probes: Tensor, threat: ThreatModel, sent: Tensor) -> Observed:
    base = model(probes).detach()

    def answer(images: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
        return (logits_after(model, images, labels, threat, probes) - base,)

    return Observed((sent.double() - base,), answer)
