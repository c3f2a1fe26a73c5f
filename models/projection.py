"""A projection head (Chen et al. 2020, SimCLR): two linear layers between a network's encoder and
its last layer.
"""

from torch import nn

WIDTH = 256
"""Outputs of the projection head (MOON, Li et al. 2021, section 4.1)."""


def projected(head: nn.Linear) -> nn.Sequential:
    """What takes the place of `head`: linear, ReLU, linear to `WIDTH`, and a new last layer."""
    return nn.Sequential(
        nn.Linear(head.in_features, head.in_features),
        nn.ReLU(),
        nn.Linear(head.in_features, WIDTH),
        nn.Linear(WIDTH, head.out_features),
    )
