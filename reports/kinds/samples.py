"""Scores of generated images: plain numbers, whose labels say by which networks they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reports.kinds.kind import Kind
from results.record import OK, Record


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


KIND = Samples()
