"""FedKD: a client sends its logits for the public images, once."""

from torch import Tensor
from torch.func import functional_call

from fedtables.benchmarks.attacks.answers import Inquiry, Observed
from fedtables.federation.client import Client
from fedtables.federation.federation import Federation
from fedtables.federation.training.inputs import unit_range
from fedtables.privacy.attacks.gradients import double
from fedtables.privacy.attacks.matching import trained_weights

TABLE = "fediod/table1"
COLUMN = {"dataset": "cifar10", "alpha": "1"}


def observe(inquiry: Inquiry, federation: Federation, client: Client) -> Observed:
    """The client's logits (m, classes) for the public images."""
    probes = federation.normalise(unit_range(federation.public.images)).double()
    logits = federation.public_outputs(federation.local_models()[client.index])
    sent = federation.channel.up(client.index, "logits", {"logits": logits})["logits"]
    model = double(federation.networks.initial(client.network)).eval()
    base = model(probes).detach()

    def answer(images: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
        weights = trained_weights(model, images, labels, inquiry.threat)
        return (functional_call(model, weights, (probes,)) - base,)

    return Observed((sent.double() - base,), answer)
