"""How far what a client gives away lies from its private images (`image_distances`)."""

from __future__ import annotations

from benchmarks.tables.measure import Config, Fitted, Measure, Taken


class Leakage(Measure):
    """Distances by client, of what `attack.images_by` names."""

    settings = frozenset({"attack"})
    extractor = True

    def needs_fit(self, config: Config) -> bool:
        """Only for generated images; attacks are on the weights that the first round starts
        from.
        """
        return config["attack.images_by"] == "generated"

    def take(self, run: Fitted) -> Taken:
        from benchmarks.measures import image_distances

        samples = run.fitted[0].samples if run.fitted else None
        return Taken(*image_distances.measure(run.config, run.federation, run.method, samples))


MEASURE = Leakage()
