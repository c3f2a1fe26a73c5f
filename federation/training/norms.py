"""BatchNorm of one value, which torch has not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch.nn.functional as F
from torch.overrides import TorchFunctionMode


class LoneBatchNorm(TorchFunctionMode):
    """BatchNorm of a single value per channel, which has no variance: it takes the running
    statistics, and leaves them as they are.

    So a client with one sample trains where the last map is 1 x 1; torch raises ValueError there.
    """

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if function is F.batch_norm and args[0].numel() == args[0].shape[1]:
            kwargs = {**(kwargs or {}), "training": False}
        return function(*args, **(kwargs or {}))
