"""A stage to ask a cache for."""

import torch

from fedtables.federation.cache import Stage, StageRequest


def request(
    inputs=None,
    value=1.0,
    *,
    kind="test",
    label="a stage",
    code="fedtables.results.files",
    calls=None,
    compute=None,
):
    def default():
        if calls is not None:
            calls.append(value)
        return Stage(
            {"x": torch.tensor([value, 2.0]), "n": torch.tensor(3)},
            {"history": {"accuracy": [0.25, value]}},
        )

    return StageRequest(
        kind, label, {"seed": 0} if inputs is None else inputs, compute or default, code
    )
