"""Federations of chest films: sites and their label sets, patients, uncertain labels, and what
cannot be built.
"""

import numpy as np
import pytest
import torch

from fedtables.benchmarks.scenarios import films
from fedtables.benchmarks.scenarios.assembly import build_federation
from fedtables.benchmarks.scenarios.configuration import Configuration
from fedtables.benchmarks.scenarios.scenario import DataSets
from fedtables.benchmarks.tables.expansion import expand
from fedtables.benchmarks.tables.registry import papers
from fedtables.benchmarks.tables.selection import Selection
from fedtables.benchmarks.tables.spec import SpecError
from fedtables.datasets import catalogue
from fedtables.datasets.catalogue import ResolvedData
from fedtables.datasets.partitions import PartitionError
from fedtables.datasets.source import DataError
from fedtables.federation.cache import StageCache
from fedtables.federation.inside.networks import HeterogeneousClientsError
from fedtables.federation.parts import Run
from fedtables.federation.seeds import Seeds
from fedtables.federation.tasks.images import MultiLabel
from fedtables.methods.fedad import FedAD
from fedtables.metrics.classification import UNKNOWN

PAPER = papers()["fedad"]


def config_of(train="cross-domain", test="nih-cxr14", **changes):
    """The smoke configuration of a column of Table 1, smaller."""
    table = next(table for table in PAPER.tables if table.key == "table1")
    (cell,) = expand(PAPER, table, Selection(only={"row": "fedad", "train": train, "test": test}))
    small = {
        "partition.pool_limit": 200,
        "partition.test_limit": 100,
        "partition.public_limit": 30,
        "local.epochs": 1,
    }
    return {**dict(cell.config), **small, **changes}


def build(config, seed=0, device="cpu", embedded=True):
    names = str(config["data.name"]).split("+")
    if embedded:
        data, *others = (catalogue.resolve(name, embedded=True) for name in names)
        public = catalogue.resolve("rsna-pneumonia", embedded=True)
    else:
        data, *others = (ResolvedData(name, name, "real", "", "not present") for name in names)
        public = ResolvedData("rsna-pneumonia", "rsna-pneumonia", "real", "", "not present")
    return build_federation(
        Configuration.parse(config),
        DataSets(data, public, others=tuple(others)),
        FedAD,
        Run(Seeds.moving(("partition", "weights"), seed), StageCache(None, device=device), device),
    )


def shard_of(client):
    return client.run(lambda shard: (shard.images, shard.targets))


@pytest.fixture(scope="module")
def both():
    return build(config_of())


def test_each_site_has_three_clients_with_its_own_findings_and_the_server_has_all(both):
    nih, chexpert = (
        tuple(config_of()[f"findings.{site}"].split("+")) for site in ("nih-cxr14", "chexpert")
    )
    assert both.task == MultiLabel((*nih, "enlarged-cardiomediastinum", "lung-opacity"))
    assert [client.task for client in both.clients] == [MultiLabel(nih)] * 3 + [
        MultiLabel(chexpert)
    ] * 3
    assert [shard_of(client)[1].shape[1] for client in both.clients] == [12] * 3 + [8] * 3
    assert (len(nih), len(chexpert), both.task.outputs) == (12, 8, 14)


def test_clients_of_a_site_share_out_its_films_and_count_the_positives_of_all_findings(both):
    assert [
        sum(client.size for client in part) for part in (both.clients[:3], both.clients[3:])
    ] == [200, 200]
    images = [shard_of(client)[0].flatten(1) for client in both.clients[:3]]
    assert len(torch.cat(images).unique(dim=0)) == 200
    for client in both.clients:
        positives = (shard_of(client)[1] == 1).sum(dim=0).tolist()
        places = [both.task.findings.index(finding) for finding in client.task.findings]
        assert [client.label_counts[place] for place in places] == positives
        assert sum(client.label_counts) == sum(
            positives
        )  # nothing in the findings that the site does not label


def test_the_test_set_is_of_both_sites_and_what_a_site_does_not_label_is_not_known(both):
    targets = both.evaluation.test_set.targets
    assert targets.shape == (200, 14)
    own = [
        both.task.findings.index(finding)
        for finding in ("enlarged-cardiomediastinum", "lung-opacity")
    ]
    assert (targets[:100, own] == UNKNOWN).all()
    assert (targets[100:, both.task.findings.index("hernia")] == UNKNOWN).all()
    assert (targets[:100, both.task.findings.index("hernia")] != UNKNOWN).all()


def test_of_one_site_clients_and_server_share_the_task():
    alone = build(config_of("nih-cxr14"))
    assert alone.task.outputs == 12
    assert {client.task for client in alone.clients} == {None}
    assert alone.networks.shared() == alone.networks.server


def test_parameters_of_sites_with_other_label_sets_cannot_be_averaged(both):
    with pytest.raises(HeterogeneousClientsError, match="label sets of their own"):
        both.networks.shared()


def test_no_patient_is_in_two_of_clients_validation_and_test():
    data = catalogue.resolve("nih-cxr14", embedded=True)
    everything = {"partition.pool_limit": 0, "partition.test_limit": 0}
    configuration = Configuration.parse(config_of("nih-cxr14", **everything))
    read = films.site_of(configuration, data)
    dealt, validation = films.divide_site(configuration.partition, read, 3, Seeds())
    train, test = (read.groups(s, read.samples(s)) for s in ("train", "test"))
    held = [
        set(train[np.concatenate(dealt)]),
        set(train[validation]),
        set(test[films.test_indices(configuration.partition, read, Seeds())]),
    ]
    assert all(held)
    assert sum(map(len, held)) == len(set.union(*held))
    assert len(held[1]) == round(0.1 * len(set(train)))


def test_no_patient_of_sites_that_share_theirs_trains_at_one_and_is_held_out_at_the_other():
    """As with two sources of the same patients, films of whom are at both sites."""
    configuration = Configuration.parse(config_of(**{"partition.pool_limit": 0}))
    first = films.site_of(configuration, catalogue.resolve("nih-cxr14", embedded=True))
    double = ResolvedData("chexpert", first.data.used, "surrogate", first.data.digest, "")
    second = films.FilmSite(double, 16, ("edema", "cardiomegaly"), "reference")
    patients = first.groups("train", first.samples("train"))
    assert (patients == second.groups("train", second.samples("train"))).all()
    one, other = (
        films.divide_site(configuration.partition, site, 3, Seeds()) for site in (first, second)
    )
    held = [set(patients[validation]) for _, validation in (one, other)]
    trained = [set(patients[np.concatenate(dealt)]) for dealt, _ in (one, other)]
    assert len(held[0]) > 1
    assert all(not a & b for a in held for b in trained)
    assert one[0][0].tolist() != other[0][0].tolist()  # though each site deals its films by itself


@pytest.mark.parametrize(
    ("policy", "becomes"),
    [("zeros", (0, 0)), ("ones", (1, 1)), ("ignore", (UNKNOWN, UNKNOWN)), ("reference", (1, 0))],
)
def test_uncertain_labels_become_what_the_policy_says(policy, becomes):
    data = catalogue.resolve("chexpert", embedded=True)
    asked = films.FilmSite(data, 16, ("edema", "cardiomegaly"), policy)
    every = np.arange(800)
    plain = films.FilmSite(data, 16, ("edema", "cardiomegaly"), "ignore").targets("train", every)
    found = asked.targets("train", every)
    unsure = plain == UNKNOWN
    assert unsure.any(axis=0).all()
    assert (found[~unsure] == plain[~unsure]).all()
    for column, value in enumerate(becomes):
        assert set(found[unsure[:, column], column]) == {value}


def test_a_finding_that_the_set_has_no_labels_of_is_not_known():
    data = catalogue.resolve("nih-cxr14", embedded=True)
    found = films.FilmSite(data, 16, ("lung-opacity", "mass"), "zeros").targets(
        "train", np.arange(50)
    )
    assert set(found[:, 0]) == {UNKNOWN}
    assert set(found[:, 1]) <= {0, 1}


def test_the_films_that_a_cell_is_tested_on_may_be_another_sites():
    data = catalogue.resolve("chexpert", embedded=True)
    configuration = Configuration.parse(config_of("nih-cxr14", "chexpert"))
    test, findings = films.test_set(configuration, data, Seeds(), "cpu")
    assert (len(findings), test.targets.shape, test.images.shape) == (8, (100, 8), (100, 1, 16, 16))


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            {"partition.clients": 5},
            PartitionError,
            "5 clients cannot be divided evenly among 2 sites",
        ),
        ({"findings.nih-cxr14": "mass+hernja"}, DataError, "unknown finding 'hernja'.*hernia"),
        (
            {"findings.uncertain": "maybe"},
            SpecError,
            "findings.uncertain cannot be 'maybe'; known: ignore, ones, reference, zeros",
        ),
    ],
)
def test_what_cannot_be_built_is_refused(changes, error, message):
    with pytest.raises(error, match=message):
        build(config_of(**changes))


def test_a_set_without_findings_is_no_site_and_the_public_films_must_be_of_another_set():
    config = config_of("nih-cxr14")
    with pytest.raises(DataError, match="digits has no findings, which this table needs"):
        films.site_of(
            Configuration.parse({**config, "findings.digits": "mass"}), catalogue.resolve("digits")
        )
    with pytest.raises(DataError, match="name it with public"):
        build_federation(
            Configuration.parse(config),
            DataSets(catalogue.resolve("nih-cxr14", embedded=True)),
            FedAD,
            Run(Seeds(), StageCache(None)),
        )


def test_the_official_sets_are_planned_without_their_files():
    limits = {
        "partition.pool_limit": 0,
        "partition.test_limit": 0,
        "partition.public_limit": 0,
        "data.image_size": 512,
    }
    planned = build(config_of(**limits), device="meta", embedded=False)
    sizes = [
        sum(client.size for client in part) for part in (planned.clients[:3], planned.clients[3:])
    ]
    official = [catalogue.source(name).sizes["train"] for name in ("nih-cxr14", "chexpert")]
    assert sizes == [total - round(0.1 * total) for total in official]
    assert planned.public.images.shape == (26_684, 1, 512, 512)


def test_a_larger_public_set_holds_every_smaller_one():
    few, more, every = (
        set(films.first_of_order(50, most, np.random.default_rng(3))) for most in (5, 20, 0)
    )
    assert few < more < every == set(range(50))
    assert len(few) == 5


def test_places_are_of_the_findings_of_all_sites_where_every_site_knows_them(both):
    assert both.evaluation.test_set.places is None
    sites = {"mnist-canvas": "three+one", "mnist-canvas-second": "one+nine"}
    settings = {f"findings.{name}": findings for name, findings in sites.items()}
    canvases = build(config_of(**settings, **{"data.name": "+".join(sites)}))
    test = canvases.evaluation.test_set
    assert canvases.task.findings == ("three", "one", "nine")
    assert test.places.shape == (200, 3, 40, 40)
    # A finding has a place exactly where it is present, and none where it is not labelled.
    assert torch.equal(test.places.flatten(2).any(dim=2), test.targets == 1)
    assert not (test.places.sum(dim=1) > 1).any()
    assert len(canvases.evaluation.validation_set.places) > 0
