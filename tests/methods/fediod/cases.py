"""Two clients' weights, predictions and scores, and federations for private runs of FedIOD."""

import math

import torch

from fedtables.federation.inside.privacy import Protection
from fedtables.methods.fediod import FedIOD
from fedtables.privacy.plan import PrivacyPlan
from tests.federation.tiny import make_federation

LN2, LN3, LN4 = math.log(2), math.log(3), math.log(4)
PI = torch.tensor([0.75, 0.25])
IDENTICAL = torch.tensor([[[1.0, 0.0, 0.0]], [[1.0, 0.0, 0.0]]])
DISJOINT = torch.tensor([[[1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0]]])
EQUAL = torch.tensor([0.5, 0.5])


def patch_logits():
    """Two clients, two samples, 1 x 2 patches, with D_k(x) of (1/2, 3/4; 1/4, 1/2) and of 3/4
    everywhere.
    """
    return torch.tensor([[[[0.0, LN3]], [[-LN3, 0.0]]], [[[LN3, LN3]], [[LN3, LN3]]]])


PRIVATE = FedIOD(epochs=2, steps=3, batch_size=4, width=4, discriminator_width=4, samples=5)


def private_federation(mechanism="gs-wgan", budget=8.0, clients=3, **options):
    plan = PrivacyPlan(
        mechanism,
        epsilon=budget,
        queries=7,
        noise_multiplier=10.0 if mechanism == "released" else 0.0,
    )
    return make_federation(
        clients, protection=Protection(plan, FedIOD.protected[mechanism]), **options
    )
