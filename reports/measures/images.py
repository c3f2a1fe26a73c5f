"""Tables of generated, recovered and segmented images."""

from collections.abc import Mapping, Sequence

from fedtables.reports.measures.kind import Kind, Pictured
from fedtables.results.record import OK, Record


class Leakage(Kind):
    """Points of every metric; the labels say by which features the distance is."""

    statistic = True
    drawn_by = "fedtables.reports.drawing.plots_clients.leakage_plot"


class Samples(Kind):
    """A table that names the judges of its images."""

    statistic = True

    def unlike(self, records: Sequence[Record]) -> Mapping[str, str]:
        """The plain score, which only the TensorFlow Inception-v3 makes comparable and no network
        here is (`models/extractors.py`); the adapted one where the local networks that judge are
        replaced by smaller ones.
        """
        configs = [record.config for record in records if record.status == OK]
        judges = {str(config.get("evaluation.extractor", "another network")) for config in configs}
        local = {
            str(config.get(f"network.{name}", name))
            for config in configs
            for name in str(config.get("network.client", "")).split("+")
            if config.get(f"network.{name}", name) != name
        }
        reasons = {"inception-score": judges, "adapted-inception-score": local}
        return {
            metric: f"by {' or '.join(sorted(networks))}"
            for metric, networks in reasons.items()
            if networks
        }


class Segmentations(Pictured):
    """A line of images per test image, and their numbers."""

    drawn_by = "fedtables.reports.drawing.pictures.segmentations"
    which = "the numbers are for the test images in the picture, not for the whole test set"


class Synthesis(Pictured):
    """A line of images per client."""

    statistic = True
    drawn_by = "fedtables.reports.drawing.pictures.synthesis"
    made = "made"


MEASURES = {
    "leakage": Leakage(),
    "samples": Samples(),
    "segmentations": Segmentations(),
    "synthesis": Synthesis(),
}
