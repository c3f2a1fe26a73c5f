"""Generated films: findings where they belong, patients apart, uncertain entries only where they
are stated.
"""

import numpy as np
import pytest

from datasets import catalogue
from datasets.films import equalise
from datasets.sources import phantoms
from datasets.sources.chexpert import NAMES as CHEXPERT_NAMES
from datasets.sources.nih_cxr import NAMES as NIH_NAMES
from datasets.sources.phantoms import CHEXPERT_RATES, NIH_RATES, SIZE, draw

SETS = [entry.name for entry in phantoms.SOURCES]


@pytest.fixture(scope="module")
def loaded():
    catalogue.load.cache_clear()
    yield {
        name: catalogue.load(name) for name in SETS
    }  # which checks sizes, classes and annotations
    catalogue.load.cache_clear()


@pytest.fixture
def sick(monkeypatch):
    """Draws films of patients that all have the same findings."""
    monkeypatch.setattr(phantoms, "HEALTHY", 0.0)

    def films(*findings, rates=NIH_RATES, count=60):
        images, has, _ = draw(count, 5, {name: 1.0 if name in findings else 0.0 for name in rates})
        assert has.sum(axis=1).tolist() == [len(findings)] * count
        return images[:, 0].astype(float)

    return films


LUNGS = np.s_[:, 8:18, 5:27]
MIDDLE = np.s_[:, 8:14, 11:21]


@pytest.mark.parametrize(
    ("finding", "where", "sign"),
    [
        ("cardiomegaly", np.s_[:, 17:22, 10:24], 1),
        ("effusion", np.s_[:, 18:21, 4:28], 1),
        ("consolidation", np.s_[:, 6:11, 6:26], 1),
        ("edema", np.s_[:, 12:19, 8:24], 1),
        ("mass", LUNGS, 1),
        ("nodule", LUNGS, 1),
        ("infiltration", LUNGS, 1),
        ("pneumonia", np.s_[:, 16:20, 5:27], 1),
        ("atelectasis", np.s_[:, 15:21, 4:28], 1),
        ("fibrosis", np.s_[:, 16:20, 5:27], 1),
        ("pleural-thickening", np.s_[:, 10:18, [4, 5, 26, 27]], 1),
        ("pneumothorax", np.s_[:, 8:14, [4, 5, 6, 25, 26, 27]], -1),
        ("emphysema", np.s_[:, 20:24, 6:12], -1),
        ("hernia", np.s_[:, 20:23, 15:18], -1),
    ],
)
def test_a_finding_of_nih_brightens_or_darkens_its_place(sick, finding, where, sign):
    assert sign * (sick(finding)[where].mean() - sick()[where].mean()) > 3


@pytest.mark.parametrize(
    ("finding", "where", "sign"),
    [
        ("enlarged-cardiomediastinum", MIDDLE, 1),
        ("lung-opacity", LUNGS, 1),
        ("lung-lesion", LUNGS, 1),
        ("support-devices", np.s_[:, 7:10, 5:27], 1),
        ("fracture", np.s_[:, 10:19, [3, 4, 27, 28]], -1),
    ],
)
def test_a_finding_of_chexpert_brightens_or_darkens_its_place(sick, finding, where, sign):
    films = sick(finding, rates=CHEXPERT_RATES)
    assert sign * (films[where].mean() - sick(rates=CHEXPERT_RATES)[where].mean()) > 3


def test_every_finding_of_either_set_is_drawn_at_some_rate():
    assert tuple(NIH_RATES) == NIH_NAMES
    assert {*CHEXPERT_RATES, "no-finding"} == set(CHEXPERT_NAMES)


def test_findings_are_as_frequent_as_stated():
    _, has, patients = draw(4000, 3, NIH_RATES)
    first = np.unique(patients, return_index=True)[1]
    assert has[first].mean(axis=0) == pytest.approx(np.array([*NIH_RATES.values()]), abs=0.025)
    assert (~has[first].any(axis=1)).mean() > phantoms.HEALTHY


def test_a_patient_has_one_or_two_films_of_the_same_findings():
    images, has, patients = draw(400, 3, NIH_RATES)
    films = np.bincount(patients - patients.min())
    assert set(films.tolist()) == {1, 2}
    assert (films == 2).mean() == pytest.approx(phantoms.SECOND_FILM, abs=0.08)
    for one, two in zip(
        *(np.flatnonzero(patients[:-1] == patients[1:]) + k for k in (0, 1)), strict=True
    ):
        assert has[one].tolist() == has[two].tolist()
        assert not np.array_equal(images[one], images[two])


def test_the_same_seed_draws_the_same_and_another_seed_other_patients():
    first, same, other = draw(30, 1, NIH_RATES), draw(30, 1, NIH_RATES), draw(30, 2, NIH_RATES)
    assert all(np.array_equal(a, b) for a, b in zip(first, same, strict=True))
    assert not np.array_equal(first[0], other[0])
    assert not set(first[2].tolist()) & set(other[2].tolist())


def test_films_are_equalised(loaded):
    for splits in loaded.values():
        for image in splits["test"].images[:20, 0]:
            assert (
                abs(equalise(image).astype(int) - image).max() <= 1
            )  # and once more changes nothing but roundings


@pytest.mark.parametrize("name", SETS)
def test_the_splits_are_as_stated_and_share_no_patient(loaded, name):
    splits = loaded[name]
    assert {split: len(part) for split, part in splits.items()} == catalogue.source(name).sizes
    train, test = (set(splits[split].groups.tolist()) for split in ("train", "test"))
    assert not train & test
    assert splits["train"].images.shape[1:] == (1, SIZE, SIZE)
    assert [0.5 < part.labels.mean() < 0.7 for part in splits.values()] == [True, True]


def test_no_patient_is_in_two_sets(loaded):
    patients = [set(part.groups.tolist()) for splits in loaded.values() for part in splits.values()]
    assert len(set().union(*patients)) == sum(map(len, patients))


@pytest.mark.parametrize("name", ["phantom-films", "phantom-films-shifted"])
def test_each_finding_has_enough_films_for_an_auc(loaded, name):
    for split in loaded[name].values():
        present = (split.annotations["findings"] == 1).mean(axis=0)
        assert present.min() > 0.02
        assert present.max() < 0.5


def test_the_class_is_whether_there_is_a_finding(loaded):
    nih = loaded["phantom-films"]["train"]
    assert np.array_equal(nih.labels, nih.annotations["findings"].any(axis=1))
    other = loaded["phantom-films-shifted"]["test"]
    assert np.array_equal(
        other.labels, 1 - other.annotations["findings"][:, CHEXPERT_NAMES.index("no-finding")]
    )


def test_some_findings_of_the_second_site_are_uncertain_in_training_and_none_in_the_test(loaded):
    splits = loaded["phantom-films-shifted"]
    unknown = (splits["train"].annotations["findings"] == 255).mean(axis=0)
    assert unknown[CHEXPERT_NAMES.index("no-finding")] == 0
    assert (np.delete(unknown, CHEXPERT_NAMES.index("no-finding")) > 0.01).all()
    assert splits["test"].annotations["findings"].max() == 1
    assert loaded["phantom-films"]["train"].annotations["findings"].max() == 1
