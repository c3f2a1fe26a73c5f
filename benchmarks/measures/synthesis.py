"""Images that a generator makes of clients' label maps, beside the real images of these maps."""

from __future__ import annotations

import numpy as np

from benchmarks.tables.measure import FittedCell, Measure, Taken
from results.arrays import pack
from results.record import Measurement


class Synthesis(Measure):
    """How far made images are from the real ones of the same maps, mean over pixels in [0, 1]; and
    the first of each client.
    """

    def take(self, run: FittedCell) -> Taken:
        federation, made = run.federation, run.fitted[0].samples
        clients = [client for client in federation.clients if client.size]
        if made is None or len(made) % len(clients):
            raise ValueError(
                f"{run.name} kept no images of every client; set {run.name}.samples above 0"
            )
        each = len(made) // len(clients)
        held = [
            client.run(lambda shard: (shard.images[:each], shard.targets[:each]))
            for client in clients
        ]
        how = f"of {len(made)} images, each client's first"
        if made.is_meta:
            return Taken((), how)
        arrays: dict[str, np.ndarray] = {}
        apart = []
        for client, images, (real, targets) in zip(clients, made.split(each), held, strict=True):
            apart.append((images.float() - real.float()).abs().mean().item() / 255)
            kept = {"image": real[0], "target": targets[0], "made": images[0]}
            for kind, values in kept.items():
                array = values.cpu().numpy()
                name = f"{kind}/client {client.index + 1}"
                arrays[name] = array.astype(np.uint16 if kind == "target" else np.uint8)
        value = Measurement("mean-absolute-error", float(np.mean(apart)))
        return Taken((value,), how, pack(arrays))


MEASURE = Synthesis()
