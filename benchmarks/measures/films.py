"""Where networks look in films, and how well each finding is told: FedAD's Table 1 and Figure 3,
and whether networks look at the findings that films have.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np

from fedtables.benchmarks.measures.final import Final, scarce_findings
from fedtables.benchmarks.scenarios.scenario import built_on
from fedtables.benchmarks.tables.measure import Config, FittedCell, Measure, Taken, counted
from fedtables.benchmarks.tables.registry import find_scenario
from fedtables.results.arrays import pack
from fedtables.results.record import Measurement

if TYPE_CHECKING:
    import torch

    from fedtables.federation.data import Checkpoint, LabelledSet
    from fedtables.federation.federation import Federation
    from fedtables.federation.tasks.images import MultiLabel


FILMS_SHOWN = 4
"""Films in the picture, each of another finding."""
MEASURED = 500
"""Test films, the first ones, that the numbers are of."""
LEVEL = 0.5
"""Above which a map counts as active (Figure 3's caption)."""
BATCH = 50
"""Films whose maps, of all findings, are computed together."""


class Attention(Measure):
    """How much of the central model's attention lies in the diversity, and of the consensus in it;
    of a table with one column.

    Maps of the first test films are compared for every finding that a film has and that some client
    holds: shares of the positions above 0.5 of all these maps together; none where no map is. The
    third number is the share of maps in which the central model looks nowhere. What is drawn
    (`fedtables.reports.drawing.pictures`) is of a few films, each of another finding, in which the
    most local models look anywhere.
    """

    def take(self, run: FittedCell) -> Taken:
        """Raises ValueError for a task without findings, for a method that leaves several networks,
        and if no film has a finding.
        """
        import torch

        from fedtables.federation.shared.averaging import aligned, attention_bounds

        federation = run.federation
        task = _findings_of(federation, "a picture of attention")
        if len(run.fitted) != 1:
            raise ValueError(
                "a picture shows where one central network looks, and the method leaves"
                f" {len(run.fitted)}"
            )
        test = federation.evaluation.test_set  # hidden from methods
        images = test.images[:MEASURED]
        central = attention_maps(federation, run.fitted[0], images)
        present = test.targets[:MEASURED].to(central.device) == 1
        height, width = central.shape[-2:]
        models = zip(federation.local_models(), federation.clients, strict=True)
        local = torch.stack(
            [
                aligned(attention_maps(federation, m, images), (height, width), c.task, task)
                for m, c in models
            ]
        )
        # Not asked of the clients: nothing may be booked after the fit.
        holders = local.new_tensor([client.label_counts for client in federation.clients]) > 0
        consensus, diversity = attention_bounds(local, holders)
        compared = present & holders.any(dim=0)
        active, agreed, held = (maps[compared] > LEVEL for maps in (central, consensus, diversity))
        if not len(active):
            raise ValueError(
                f"none of the first {len(images)} test films has a finding that a client holds"
            )
        nowhere = ~active.flatten(1).any(dim=1)  # a map ends at 1, or is 0 everywhere
        measurements = [
            Measurement(name, run.percent * int(part.sum()) / int(whole.sum()))
            for name, part, whole in (
                ("attention-in-diversity", active & held, active),
                ("consensus-covered", active & agreed, agreed),
                ("attention-empty", nowhere, torch.ones_like(nowhere)),
            )
            if whole.any()
        ]
        looking = ((local > LEVEL).flatten(3).any(dim=3) & holders[:, None]).sum(dim=0)
        films, findings = _chosen(torch.where(compared, looking, -1).cpu().numpy())
        drawn = {
            "local": local[:, films, findings].transpose(0, 1),
            "consensus": consensus[films, findings],
            "diversity": diversity[films, findings],
            "central": central[films, findings],
        }
        arrays = {name: _bytes(maps, images.shape[-2:]) for name, maps in drawn.items()}
        arrays |= {"images": images[films].cpu().numpy(), "finding": np.array(findings, np.uint8)}
        how = (
            f"of {len(active):,} findings of the first {len(images):,} test films, at the end of"
            f" the run; maps above {LEVEL}"
        )
        return Taken(tuple(measurements), how, pack(arrays))


def _findings_of(federation: Federation, what: str) -> MultiLabel:
    """The federation's task. Raises ValueError for one without findings."""
    from fedtables.federation.tasks.images import MultiLabel

    if not isinstance(federation.task, MultiLabel):
        raise ValueError(f"{what} is of a multi-label task, and the task is {federation.task}")
    return federation.task


def attention_maps(federation: Federation, model: Checkpoint, images: torch.Tensor) -> torch.Tensor:
    """A network's attention for every class of its own, (n, c, h, w)."""
    import torch

    from fedtables.federation.training.inputs import unit_range
    from fedtables.models.cut import encode
    from fedtables.models.saliency import class_attention

    network = federation.networks.module(model)
    parts = []
    for part in images.split(BATCH):
        with torch.no_grad():
            seen = federation.normalise(unit_range(part.to(federation.networks.device)))
            features = encode(network, seen)
        parts.append(class_attention(network, features, create_graph=False)[1].detach())
    return torch.cat(parts)


def _bytes(maps: torch.Tensor, size: torch.Size) -> np.ndarray:
    """Maps (n, ..., h, w) in [0, 1], NaN where a client has none, as uint8 on the images' grid."""
    import torch.nn.functional as F

    flat = maps.nan_to_num().reshape(len(maps), -1, *maps.shape[-2:])
    large = F.interpolate(flat, size=tuple(size), mode="bilinear", align_corners=False)
    shown: np.ndarray = (255 * large).round().clamp(0, 255).cpu().numpy().astype(np.uint8)
    return shown.reshape(*maps.shape[:-2], *size)


def _chosen(looking: np.ndarray) -> tuple[list[int], list[int]]:
    """The films and findings that are shown, none twice: those where the most local models look
    anywhere. `looking` (films, findings) is their number, -1 where a film has no such finding.
    """
    left, films, findings = looking.copy(), list[int](), list[int]()
    while len(films) < FILMS_SHOWN and left.max(initial=-1) >= 0:
        film, finding = (int(place) for place in np.unravel_index(left.argmax(), left.shape))
        left[film], left[:, finding] = -1, -1
        films.append(film)
        findings.append(finding)
    return films, findings


SITES = "findings."
"""What the settings begin with that list a site's findings; `findings.uncertain` lists none."""


class Findings(Measure):
    """AUC by finding, their number, and their means over those that all sites label and over all;
    mean over models. They are of the test set that `evaluation.test` names, which may be of no
    client.

    A finding of which the AUC is not defined, or that no model knows, has no number. The mean over
    all is only of models that know all of them.
    """

    def take(self, run: FittedCell) -> Taken:
        """Raises ValueError for a task without findings, or if no finding has an AUC."""
        from fedtables.federation.tasks.images import MultiLabel
        from fedtables.federation.training.loops import predict
        from fedtables.metrics.classification import auc_by_class

        federation, fitted = run.federation, run.models
        _findings_of(federation, "AUC by finding")
        test, findings, name = tested(run)
        test_task = MultiLabel(tuple(findings))
        known, scores = set(findings), []
        for checkpoint in fitted:
            task = task_of(federation, checkpoint)
            known &= set(task.findings)
            module = federation.networks.module(checkpoint)
            outputs = predict(module, test.images, normalise=federation.normalise)
            placed = test_task.place(outputs, task.findings)
            scores.append(auc_by_class(placed, test.targets.to(placed.device)))
        # Of one finding all models have an AUC, or none: the test films decide, and models of one
        # table have one label set.
        columns = zip(findings, np.transpose(scores), strict=True)
        means = {finding: float(np.mean(column)) for finding, column in columns}
        means = {finding: mean for finding, mean in means.items() if not np.isnan(mean)}
        if not means:
            raise ValueError(
                f"no finding has films of {name} both with and without it, so that no AUC is"
                " defined"
            )
        models = [(1, 1)] * len(fitted)
        measurements = [
            counted("auc", run.percent * value, models, f"class={finding}")
            for finding, value in means.items()
        ]
        measurements.append(Measurement("num-classes", float(len(means)), "class=all"))

        def mean_over(some: list[str], column: str) -> None:
            defined = [means[finding] for finding in some if finding in means]
            if defined:
                mean, of = run.percent * float(np.mean(defined)), [(len(defined), len(some))]
                measurements.append(counted("mauc", mean, of, f"class={column}"))

        mean_over(overlapping(run.config), "overlap")
        if known >= set(findings):
            mean_over(findings, "total")
        how = f"AUC on {len(test.images):,} test films of {name}, after training"
        text = [
            how + (", mean over models" if len(fitted) > 1 else ""),
            *scarce_findings(test, [f for f in findings if f in known], findings),
        ]
        return Taken(tuple(measurements), "; ".join(text))


def tested(run: FittedCell) -> tuple[LabelledSet, list[str], str]:
    """The test set that `evaluation.test` names, with targets (n, findings), its findings, and what
    a text calls it.
    """
    from fedtables.benchmarks.scenarios.configuration import Configuration

    configuration = Configuration.parse(run.config)
    scenario = find_scenario(configuration.data.task)
    wanted, device = configuration.evaluation.test, built_on(run.federation.networks.device)
    source = next(source for source in run.sources if source.asked == wanted)
    test, findings = scenario.test_set(configuration, source, run.seeds, device)
    return test, list(findings), source.label


def overlapping(config: Config) -> list[str]:
    """The findings that all sites of a configuration label, in the order of the first."""
    first, *others = [
        str(value).split("+")
        for name, value in config.items()
        if name.startswith(SITES) and name != "findings.uncertain"
    ]
    return [finding for finding in first if all(finding in other for other in others)]


def task_of(federation: Federation, checkpoint: Checkpoint) -> MultiLabel:
    """What a checkpoint has outputs for: its client's own label set, or the federation's."""
    tasks = {f"client-{client.index}": client.task for client in federation.clients}
    return cast("MultiLabel", tasks.get(checkpoint.owner) or federation.task)


POINTING, EMPTY = "pointing-accuracy", "attention-empty"


class Pointing(Measure):
    """Pointing accuracy and the share of maps in which a network looks nowhere, beside the numbers
    of `final`.
    """

    def take(self, run: FittedCell) -> Taken:
        learnt = tuple(name for name in run.metrics if name not in (POINTING, EMPTY))
        numbers, pointed = Final().take(replace(run, metrics=learnt)), pointing_of(run)
        how = f"{numbers.statistic}; {pointed.statistic}"
        return Taken(numbers.measurements + pointed.measurements, how)


def pointing_of(run: FittedCell) -> Taken:
    """Over all findings that test films have and a network knows, the shares of attention maps that
    point at the finding and of those that are 0 everywhere; means over networks. Raises ValueError
    for films of which it is not known where their findings are, and if a network knows none.
    """
    from fedtables.federation.shared.averaging import aligned
    from fedtables.metrics.masks import pointing_hits

    federation, test = run.federation, run.federation.evaluation.test_set
    if test.places is None:
        raise ValueError(
            "pointing is measured where it is known at which pixels a finding is; the test films"
            " have no such annotation"
        )
    hits, empty, pairs = list[float](), list[float](), 0
    for checkpoint in run.models:
        own = attention_maps(federation, checkpoint, test.images)
        task = task_of(federation, checkpoint)
        maps = aligned(own, (own.shape[-2], own.shape[-1]), task, federation.task)
        present, places = test.targets.to(maps.device) == 1, test.places.to(maps.device)
        asked = present & ~maps.isnan().flatten(2).any(dim=2)
        if not asked.any():
            raise ValueError(f"no test film has a finding that {checkpoint.owner} knows")
        hits.append(float(pointing_hits(maps[asked], places[asked]).double().mean()))
        empty.append(float((maps[asked].flatten(1) == 0).all(dim=1).double().mean()))
        pairs = max(pairs, int(asked.sum()))
    means = (run.percent * float(np.mean(shares)) for shares in (hits, empty))
    how = f"pointing of up to {pairs:,} findings of {len(test.targets):,} test films"
    return Taken(tuple(map(Measurement, (POINTING, EMPTY), means)), how)


MEASURES = {"attention": Attention(), "findings": Findings(), "pointing": Pointing()}
