"""FedAD among sites with label sets of their own."""

import pytest
import torch

from fedtables.federation.client import Client, Shard
from fedtables.federation.data import LabelledSet, PublicData
from fedtables.federation.inside.privacy import Protection
from fedtables.federation.tasks.images import MultiLabel
from fedtables.federation.training.plan import TrainingPlan
from fedtables.methods.fedad import FedAD
from fedtables.privacy.plan import DP_SGD, PrivacyPlan
from tests.federation.tiny import make_federation
from tests.methods.fedad.cases import attention_of, transferred

ALL = ("left", "right", "top")
SITES = [("left", "right"), ("left", "right"), ("top", "left"), ("top", "left")]
"""Which findings each of four clients labels, in its own order; `top` is labelled at two sites,
`right` at the others."""


def films(count, seed):
    """Dark images (n, 1, 8, 8), bright at the left, at the right, in the top rows' middle; and
    which of the three each is.
    """
    generator = torch.Generator().manual_seed(seed)
    found = torch.rand(count, 3, generator=generator) < 0.5
    images = torch.randint(0, 60, (count, 1, 8, 8), generator=generator)
    for finding, (rows, columns) in enumerate(
        [((0, 8), (0, 2)), ((0, 8), (6, 8)), ((0, 4), (3, 5))]
    ):
        images[:, :, rows[0] : rows[1], columns[0] : columns[1]] += 180 * found[:, finding].view(
            -1, 1, 1, 1
        )
    return images.to(torch.uint8), found.to(torch.uint8)


def film_client(index, own, samples=32):
    images, targets = films(samples, index)
    counts = tuple(
        int(targets[:, c].sum()) if finding in own else 0 for c, finding in enumerate(ALL)
    )
    columns = [ALL.index(finding) for finding in own]
    task = MultiLabel(own) if own != ALL else None
    return Client(
        index,
        "cnn",
        "cnn-small",
        Shard(images, targets[:, columns]),
        counts,
        f"films {index} {own}",
        task,
    )


def film_federation(sites=SITES, **changes):
    settings = {
        "clients": [film_client(index, own) for index, own in enumerate(sites)],
        "task": MultiLabel(ALL),
        "public": PublicData(films(40, 100)[0], "films"),
        "test": LabelledSet(*films(60, 200), "test films"),
        "validation": LabelledSet(*films(30, 300), "validation films"),
        "local": TrainingPlan(epochs=8, batch_size=8, lr=0.01),
        "server": TrainingPlan(epochs=8, batch_size=8, lr=0.01),
    }
    return make_federation(**{**settings, **changes})


@pytest.mark.parametrize(
    "method", [FedAD(), FedAD(one_shot=True, bound_scale="mean"), FedAD(dropped=1, quantised=True)]
)
def test_sites_with_other_findings_teach_a_student_all_of_them(method):
    federation = film_federation()
    model = method.fit(federation)
    assert model.outputs == 3
    assert model.history["mauc"][-1] > 0.9
    sent = [t.bytes for t in federation.channel.ledger if t.kind == "attention"]
    assert len(set(sent)) == 1  # of two classes each


def test_the_ensemble_of_a_finding_is_of_the_clients_that_label_it():
    federation = film_federation()
    method = FedAD(one_shot=True)
    counts = method.class_counts(federation)
    found, teachers = transferred(federation, method)
    logits, maps = zip(
        *(attention_of(teacher, federation.public.images) for teacher in teachers), strict=True
    )
    right = counts[:2, 1] / counts[:2, 1].sum()
    torch.testing.assert_close(
        found.logits[:, 1],
        right[0] * logits[0][:, 1] + right[1] * logits[1][:, 1],
        atol=1e-5,
        rtol=1e-4,
    )
    torch.testing.assert_close(
        found.consensus[:, 1], torch.minimum(maps[0][:, 1], maps[1][:, 1]), atol=1e-5, rtol=1e-4
    )
    # `top` comes first in the label set of the last two.
    torch.testing.assert_close(
        found.diversity[:, 2], torch.maximum(maps[2][:, 0], maps[3][:, 0]), atol=1e-5, rtol=1e-4
    )
    assert found.known.tolist() == [True] * 3


def test_a_client_is_not_heard_on_a_finding_that_it_does_not_label_whatever_its_counts_say():
    federation = film_federation()
    method = FedAD(one_shot=True, dropped=1)
    found, _ = transferred(federation, method, torch.full((4, 3), 5.0))
    assert found.counts.tolist() == [[5, 5, 0]] * 2 + [[5, 0, 5]] * 2
    assert found.ensemble().logits.isfinite().all()


def test_counts_of_findings_have_no_private_form():
    protection = Protection(PrivacyPlan(DP_SGD, 50.0), FedAD.protections()[DP_SGD])
    with pytest.raises(ValueError, match="one sample more changes several counts"):
        film_federation(protection=protection).label_counts()
