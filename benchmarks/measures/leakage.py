"""How far what a client gives away lies from its private images (`attacks/distances.py`)."""

from __future__ import annotations

from benchmarks.tables.measure import Config, FittedCell, Measure, Taken

ATTACKS = ("dlg", "idlg", "inverting")
"""Rows' images that an attack makes (`privacy.attacks.gradients.KINDS`, which imports torch)."""


class Leakage(Measure):
    """Distances by client, of what `attack.images_by` names."""

    settings = frozenset({"attack"})
    extractor = True

    def check(self, config: Config) -> None:
        from benchmarks.attacks.distances import AttackSettings
        from benchmarks.scenarios.configuration import NetworkSettings, read_section
        from models.catalogue import entry

        super().check(config)
        settings = read_section(config, "attack", AttackSettings)
        if settings.network:
            entry(read_section(config, "network", NetworkSettings).named(settings.network))

    def needs_fit(self, config: Config) -> bool:
        """Only for generated images; attacks are on the weights that the first round starts
        from.
        """
        return config["attack.images_by"] in ("generated", "nearest-generated")

    def unplanned(self, config: Config) -> str:
        """An attack, which ends where it succeeds, and what it takes at most."""
        kind = config["attack.images_by"]
        if kind not in ATTACKS:
            return ""
        messages = -(-int(config["attack.images"]) // int(config["attack.batch_size"]))
        starts = int(config["attack.clients"]) * messages * int(config["attack.restarts"])
        steps = int(config["attack.iterations"])
        return (
            f"{kind} attacks, each of which ends where it succeeds: at most {starts:,} starts of"
            f" {steps:,} iterations"
        )

    def take(self, run: FittedCell) -> Taken:
        from benchmarks.attacks import distances

        samples = run.fitted[0].samples if run.fitted else None
        return Taken(*distances.measure(run.config, run.federation, run.method, samples))


MEASURE = Leakage()
