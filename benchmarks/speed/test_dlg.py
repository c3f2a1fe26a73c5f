"""DLG's iterations (steps of L-BFGS, each of 20 evaluations) per second on the paper's network and
image size.

Against a bare loop over the same steps; the suite's also keeps the best point, watches for numbers
that are none, and looks whether it is done.
"""

from __future__ import annotations

import pytest
import torch

from benchmarks.speed.pairs import compare
from models.catalogue import build
from privacy.attacks.dlg import deep_leakage
from privacy.attacks.threat import ThreatModel, share

CHANNELS, SIDE, CLASSES = 3, 32, 100
ITERATIONS = 10


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_iterations_of_dlg(benchmark, dtype):
    torch.manual_seed(0)
    model = build("lenet-sigmoid", CHANNELS, CLASSES, SIDE).to(dtype)
    image = torch.rand(1, CHANNELS, SIDE, SIDE, dtype=torch.float64).to(dtype)
    threat = ThreatModel()
    shared = share(model, image, torch.tensor([0]), threat)

    def suite():
        start = torch.Generator().manual_seed(4)  # from here, both dtypes descend steadily
        shape = (CHANNELS, SIDE, SIDE)
        reconstruction = deep_leakage(
            model,
            shared,
            shape,
            CLASSES,
            threat,
            iterations=ITERATIONS,
            line_search=False,
            generator=start,
        )
        assert len(reconstruction.trajectory) == ITERATIONS

    def bare():
        start = torch.Generator().manual_seed(4)
        dummy, label = (
            torch.randn(shape, generator=start).to(dtype).requires_grad_()
            for shape in (image.shape, (1, CLASSES))
        )
        optimizer = torch.optim.LBFGS([dummy, label])

        def closure():
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(dummy), label.softmax(dim=1))
            guessed = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
            distance = sum((a - b).pow(2).sum() for a, b in zip(guessed, shared, strict=True))
            distance.backward()
            return distance

        for _ in range(ITERATIONS):
            optimizer.step(closure)

    compare(benchmark, {"bare loop": bare, "suite": suite}, work=ITERATIONS, unit="iterations")
