"""What a model answers with attention, and the side of its maps."""

import torch

from models.cut import encode
from models.saliency import class_attention
from tests.methods.shards import network_inputs

SIDE = 2
"""Of the maps that `cnn-small` makes of images with 8 pixels."""


def attention_of(model, images):
    with torch.no_grad():
        return class_attention(model, encode(model, network_inputs(images)), create_graph=False)
