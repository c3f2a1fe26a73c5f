"""Every method with rounds, with little to do, and a federation of its kind."""

from tests.methods.fediod_segmentation.cases import RELEASED

from baselines.asyndgan import AsynDGAN
from baselines.fedavg_plus import FedAvgPlus
from baselines.fedavgm import FedAvgM
from baselines.fedgen import FedGEN
from baselines.fedkd import FedKD
from baselines.fedmd_plus import FedMDPlus
from baselines.fedprox_plus import FedProxPlus
from baselines.fl_mrcm import FLMRCM
from baselines.li_2019 import Li2019
from federation.training.plan import TrainingPlan
from methods.fedavg import FedAvg
from methods.feddf import FedDF
from methods.fediod import FedIOD
from methods.fediod_reconstruction import FedIODReconstruction
from methods.fediod_segmentation import FedIODSegmentation
from methods.fedmd import FedMD
from methods.fedprox import FedProx
from methods.fedsa import FedSA
from tests.federation.tiny import (
    make_dense_federation,
    make_federation,
    make_reconstruction_federation,
)
from tests.methods.shards import validation_set

CONDITIONAL = {
    "generator": "resnet-generator-narrow",
    "discriminator_width": 4,
    "discriminator_layers": 1,
    "features": "vgg16-random",
    "steps": 2,
}
METHODS = [
    FedAvg(rounds=4),
    FedProx(rounds=4),
    FedAvgM(rounds=4),
    Li2019(rounds=4),
    FedGEN(rounds=4, noise=4, hidden=8, generator_steps=3),
    FedDF(rounds=4, distillation_steps=6, evaluation_interval=2),
    FedMD(rounds=4, public_samples=4, revisit_epochs=1),
    FedSA(
        rounds=4,
        selection_gap=3,
        selected=2,
        weak_epochs=1,
        local_epochs=1,
        adaptation_epochs=1,
        adaptation_gap=2,
    ),
    FedSA(
        rounds=4,
        selection_gap=1,
        selected=2,
        weak_epochs=1,
        local_epochs=1,
        adaptation_epochs=1,
        retrain=False,
        transferability="released",
        saliency="grad-cam",
        adaptation="all",
    ),
    FedAvgPlus(rounds=4, weak_epochs=1, local_epochs=1, adaptation_epochs=1),
    FedProxPlus(rounds=4, weak_epochs=1, local_epochs=1, adaptation_epochs=1),
    FedMDPlus(rounds=4, public_samples=10, revisit_epochs=1),
    FedIOD(epochs=4, steps=2, batch_size=4, latent=5, width=4, discriminator_width=4, samples=5),
    FedIOD(
        epochs=4,
        steps=1,
        batch_size=4,
        latent=5,
        width=4,
        discriminator_width=4,
        samples=5,
        optimizer="sgd",
        student_steps=2,
        weights="size",
    ),
    AsynDGAN(**CONDITIONAL, constant_epochs=2, decay_epochs=2),
    FedIODSegmentation(**CONDITIONAL, warmup_epochs=1, epochs=3, decay_epochs=1),
    FedIODSegmentation(
        **CONDITIONAL | RELEASED | {"decay_epochs": 2, "epochs": 2}, warmup_epochs=2
    ),
    FLMRCM(rounds=4, hidden=8),
    FedKD(multi_round=True),
    FedIODReconstruction(**{**CONDITIONAL, "steps": 1, "perceptual": 0.0, "l1": 1.0}, epochs=4),
]


def federation_of(method, progress=lambda text, share: None, device="cpu"):
    """Three clients with samples of the method's kind."""
    server = TrainingPlan(epochs=4, batch_size=3, lr=0.01, schedule="cosine")
    if method.reconstructs:
        return make_reconstruction_federation((4, 3, 2), progress=progress, device=device)
    if method.dense:
        return make_dense_federation((4, 3, 2), server=server, progress=progress, device=device)
    return make_federation(
        clients=3,
        server=server,
        validation=validation_set(device),
        probe=validation_set(device),
        progress=progress,
        device=device,
    )
