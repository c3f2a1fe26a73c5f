"""What a model answers with attention, and the side of its maps."""

import torch

from fedtables.models.cut import encode
from fedtables.models.saliency import class_attention
from tests.methods.shards import network_inputs

SIDE = 2
"""Of the maps that `cnn-small` makes of images with 8 pixels."""


def transferred(federation, method, counts=None):
    """What the clients say together of the public images, and their models."""
    teachers = [federation.networks.module(model) for model in federation.local_models()]
    counts = method.class_counts(federation) if counts is None else counts
    images = federation.public.images
    return method.transfer(federation, federation.clients, teachers, counts, images), teachers


def attention_of(model, images):
    with torch.no_grad():
        return class_attention(model, encode(model, network_inputs(images)), create_graph=False)
