"""FedIOD where outputs are images: what teachers and student see, what crosses, and what has no
meaning.
"""

import pytest
import torch

from fedtables.federation.tasks.values import Reconstruction
from fedtables.methods.fediod_reconstruction import FedIODReconstruction
from fedtables.methods.fediod_segmentation import Answered, Server
from tests.federation.tiny import make_reconstruction_federation
from tests.methods.fediod.cases import PI, patch_logits
from tests.methods.shards import booked, size

SIDE = 32


def quick(**changes):
    sizes = {
        "generator": "resnet-generator-narrow",
        "discriminator_width": 4,
        "discriminator_layers": 1,
        "perceptual": 0.0,
        "l1": 1.0,
        "batch_size": 2,
        "steps": 2,
        "epochs": 2,
        "lr": 0.01,
    }
    return FedIODReconstruction(**{**sizes, **changes})


# -- what is seen --


@pytest.fixture
def undersampled(monkeypatch):
    """The draws for columns, the images before and after, of every call in turn."""
    calls, seen = [], Reconstruction.seen

    def note(self, images, draws):
        made = seen(self, images, draws)
        calls.append((draws.clone(), images.detach().clone(), made.detach().clone()))
        return made

    monkeypatch.setattr(Reconstruction, "seen", note)
    return calls


def test_teachers_and_student_see_the_same_columns_in_a_step_and_others_in_the_next(undersampled):
    federation = make_reconstruction_federation()
    undersampled.clear()  # of the federation's own samples
    quick().fit(federation)
    assert len(undersampled) == 2 * 2 * 3  # two teachers and a student in two steps of two epochs
    steps = [undersampled[first : first + 3] for first in range(0, 12, 3)]
    for of_step in steps:
        draws, images, made = zip(*of_step, strict=True)
        assert draws[0].shape == (4, SIDE)  # of each image its own
        for kind in (draws, images, made):
            assert torch.equal(kind[0], kind[1])
            assert torch.equal(kind[0], kind[2])
        assert (images[0] >= 0).all()
        assert (images[0] <= 1).all()
    assert len({draws.numpy().tobytes() for (draws, *_), *_ in steps}) == 4


# -- losses --


def test_outputs_are_compared_pixel_by_pixel():
    images = torch.tensor([[[[0.5, 0.25]]]])
    method = quick()
    assert method.as_scores(images) is images
    ensemble = torch.tensor([[[[0.25, 0.25]]]])
    mimic = method.mimic_loss(images, ensemble)
    assert mimic.item() == pytest.approx(0.25**2 / 2)  # Eq. 10: two pixels, one output


def test_teachers_weigh_by_how_odd_they_find_the_image_alone():
    # All pixels of a client are of one class, however many. Eq. 8: D_k(x) is 5/8 and 3/8 at the
    # first client, 3/4 at the second; E[D_k(x')] 1/2 and 1/4: 5/4 and 3/4 against 3.
    counts = torch.tensor([[30.0], [10.0]])
    server = Server(None, None, PI, counts, [], [])
    none = torch.empty(0)
    said = Answered(none, patch_logits(), none, none, torch.tensor([0.5, 0.25]))
    weights = quick().teacher_weights(server, said)
    expected = torch.tensor([[5 / 17], [1 / 5]])
    torch.testing.assert_close(weights, torch.stack([expected, 1 - expected]))


# -- what crosses --


def test_foregrounds_cross_once_as_int16_and_images_of_contours_go_down():
    sizes = (6, 4)
    federation = make_reconstruction_federation(sizes)
    quick().fit(federation)
    found = booked(federation)
    logits, images = size("outputs", 4, 1, SIDE, SIDE), size("images", 4, 1, SIDE, SIDE)
    for k, n in enumerate(sizes):
        maps = size("maps", n, SIDE, SIDE, dtype=torch.int16)
        assert found[0, "up", "conditions", k] == (maps, 1)
        for number in (1, 2):
            assert found[number, "up", "logits", k] == (2 * logits, 2)
            assert found[number, "down", "images", k] == (2 * images, 2)
    assert sum(place[1:3] == ("up", "conditions") for place in found) == 2


def test_what_is_sent_is_the_foreground_of_the_whole_images(monkeypatch):
    federation, sent = make_reconstruction_federation(), {}
    up = federation.channel.up

    def note(client, kind, payload):
        if kind == "conditions":
            sent[client] = payload["maps"].clone()
        return up(client, kind, payload)

    monkeypatch.setattr(federation.channel, "up", note)
    quick(epochs=1).fit(federation)
    for client in federation.clients:
        whole = client.run(lambda shard: shard.targets)
        assert torch.equal(sent[client.index], federation.task.label_maps(whole).short())


# -- refusals --


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        *(
            ({name: 0.1}, "set confidence, uniqueness and supervised to 0")
            for name in ("confidence", "uniqueness", "supervised")
        ),
        ({"temperature": 5.0}, "no temperature and no classes; set temperature to 0"),
        ({"printed_mimic": False}, "no temperature and no classes"),
        ({"weights": "sum"}, "no temperature and no classes"),
        ({"weights": "class-count"}, "no temperature and no classes"),
    ],
)
def test_what_is_of_classes_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        quick(**fields)
