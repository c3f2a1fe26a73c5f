"""A line through images of one pixel, and its training."""

from dataclasses import fields

import torch
from torch import nn

from fedtables.federation.data import TrainingSet
from fedtables.federation.training.inputs import Inputs, Normalisation
from fedtables.federation.training.loops import train
from fedtables.federation.training.plan import Training, TrainingPlan

PLAIN = Normalisation((0.0,), (1.0,))


def line(weight=2.0):
    """x -> weight x, for images of one pixel."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(1, 1, bias=False))
    nn.init.constant_(model[1].weight, weight)
    return model


def weight_of(model):
    return model[1].weight.item()


def pixels(*values):
    return torch.tensor(values, dtype=torch.uint8).view(-1, 1, 1, 1)


def squared(outputs, targets):
    return (outputs.squeeze(1) - targets) ** 2


def outputs_only(outputs, targets):
    return outputs.squeeze(1)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def sgd(epochs=1, batch_size=10, lr=0.1, **changes):
    return TrainingPlan(epochs, batch_size, lr, optimizer="sgd", **changes)


def fit(model, images, targets, plan, loss=squared, sample_weights=None, **changes):
    """Train the model; `changes` are fields of `Training` and `Inputs`, and options of `train`."""
    given = {"normalise": PLAIN, "generator": generator(), **changes}
    inputs, training = (
        {field.name: given.pop(field.name) for field in fields(kind) if field.name in given}
        for kind in (Inputs, Training)
    )
    samples = TrainingSet(images, targets, sample_weights)
    train(model, samples, Training(loss, plan, **training), Inputs(**inputs), **given)


class DropsHalf(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop, self.norm, self.line = nn.Dropout(0.5), nn.BatchNorm2d(1), line(3.0)

    def forward(self, images):
        return self.line(self.norm(self.drop(images)))
