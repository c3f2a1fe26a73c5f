"""Inception Scores of the images that a method generated: by an ImageNet network, and by every
local model.
"""

from __future__ import annotations

from benchmarks.tables.measure import FittedCell, Measure, Taken
from results.record import Measurement


class Samples(Measure):
    """Two scores of the samples that the fit left."""

    extractor = True

    def take(self, run: FittedCell) -> Taken:
        """Raises ValueError for a method that generated no images."""
        from federation.training.inputs import unit_range
        from federation.training.loops import predict
        from metrics.generated import adapted_inception_score, inception_score
        from models import extractors

        federation, images = run.federation, run.fitted[0].samples
        if images is None:
            raise ValueError(
                f"{run.name} generated no images to measure; set {run.name}.samples above 0"
            )
        extractor = extractors.load(
            str(run.config["evaluation.extractor"]), federation.networks.device
        )
        score = inception_score(extractor.probabilities(unit_range(images)))
        local = [
            federation.networks.module(c)
            for c, client in zip(federation.local_models(), federation.clients, strict=True)
            if client.size
        ]
        outputs = [predict(model, images, normalise=federation.normalise) for model in local]
        adapted = adapted_inception_score([scores.softmax(dim=1) for scores in outputs])
        networks = ", ".join(sorted({client.network for client in federation.clients}))
        how = (
            f"{len(images):,} images in one split; plain score by {extractor.title}, adapted by"
            f" {len(local)} local models ({networks})"
        )
        return Taken(
            (
                Measurement("inception-score", score),
                Measurement("adapted-inception-score", adapted),
            ),
            how,
        )


MEASURE = Samples()
