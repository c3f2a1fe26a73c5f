"""FedIOD's Figure 4: what is compared with what, from the command line and by hand."""

import csv
import re
from types import SimpleNamespace

import pytest
import torch

from fedtables.benchmarks.attacks import distances
from fedtables.benchmarks.measures.images import MEASURES
from fedtables.benchmarks.tables.spec import SpecError
from fedtables.federation.client import Client, Shard
from fedtables.federation.seeds import Seeds
from fedtables.methods.fedavg import FedAvg
from fedtables.methods.fediod import FedIOD

FIGURE = ("reproduce", "fediod/figure4", "--methods", "+private,+noise")


@pytest.fixture(scope="module")
def figure(tmp_path_factory, module_command):
    """Table 1's FedIOD cell, then Figure 4 with its reference rows, into one cache."""
    results = tmp_path_factory.mktemp("figure4")
    table1 = (
        "reproduce",
        "fediod/table1",
        "--only",
        "method=fediod",
        "--only",
        "dataset=cifar10",
        "--only",
        "alpha=1",
    )

    def run(*arguments):
        done = module_command(*arguments, "--results", str(results))
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr
        return done.stdout

    run(*table1)
    run(*FIGURE)
    return results / "smoke" / "fediod", run


def values(figure):
    with (figure[0] / "figure4.csv").open(newline="") as stream:
        return {
            (x["row"], x["column"].rpartition("client=")[2], x["metric"]): x
            for x in csv.DictReader(stream)
        }


def test_what_dlg_recovers_lies_nearer_than_other_private_images_and_these_nearer_than_noise(
    figure,
):
    dlg, private, noise = (
        float(values(figure)[row, "average", "fid"]["value"])
        for row in ("fedavg", "private", "noise")
    )
    assert 0 <= dlg < private / 100
    assert private < noise


@pytest.mark.slow  # `tox run -e regression` makes this figure too
def test_the_fit_is_table_1s_and_a_second_command_attacks_nothing(figure):
    folder, run = figure
    again = run(*FIGURE)
    log = (folder / "figure4.log").read_text()
    assert re.findall(r": (?:fit|local-model) .* (computed|reused)", log).count("computed") == 0
    assert len(re.findall(r": reconstruction client .* computed", log)) == 2
    assert "4 cells, 4 finished before, 0 to run" in again
    assert (folder / "figure4.png").read_bytes().startswith(b"\x89PNG")


# -- clients and rows by hand --


def client(index: int, size: int) -> Client:
    shard = Shard(
        torch.zeros(size, 1, 2, 2, dtype=torch.uint8), torch.zeros(size, dtype=torch.long)
    )
    return Client(index, "", "", shard, (size,), "")


def drawn(sizes, count, images, attack=0):
    federation = SimpleNamespace(
        clients=[client(k, size) for k, size in enumerate(sizes)],
        streams=SimpleNamespace(seeds=Seeds(attack=attack)),
    )
    return [found.index for found in distances.drawn_clients(federation, count, images)]


def test_clients_are_drawn_by_the_attacks_seed_among_those_with_twice_the_images():
    sizes = (9, 10, 11, 0, 30, 40, 50, 60)
    assert set(drawn(sizes, 6, 5)) == {1, 2, 4, 5, 6, 7}
    assert drawn(sizes, 3, 5) == drawn(sizes, 6, 5)[:3]
    assert len({tuple(drawn(sizes, 6, 5, attack)) for attack in range(5)}) > 1
    with pytest.raises(ValueError, match="6 of 8 clients hold 10 images, 7 are needed"):
        drawn(sizes, 7, 5)


@pytest.mark.parametrize(
    ("source", "method", "samples", "why"),
    [
        ("dlg", FedIOD(), None, "FedIOD shares no parameters"),
        ("generated", FedAvg(), None, "FedAvg generated no images"),
        (
            "generated",
            FedIOD(),
            torch.zeros(2, 3, 8, 8),
            "FedIOD generated 2 images, fewer than the 3",
        ),
    ],
)
def test_a_method_that_has_nothing_to_compare_is_named(source, method, samples, why):
    config = {
        "attack.images_by": source,
        "attack.images": 3,
        "attack.clients": 1,
        "evaluation.extractor": "efficientnet-lite0",
    }
    federation = SimpleNamespace(device="meta")
    fitted = [SimpleNamespace(samples=samples)]
    run = SimpleNamespace(config=config, federation=federation, method=method, fitted=fitted)
    with pytest.raises(ValueError, match=why):
        distances.measure(run)


@pytest.mark.parametrize(
    ("name", "wrong", "told"),
    [
        ("attack.images_by", "noises", "did you mean noise"),
        ("attack.shares", "updates", "did you mean update"),
        ("attack.batch_norm", "batch", "known: eval, train"),
    ],
)
def test_what_an_attack_cannot_be_is_refused_before_anything_runs(name, wrong, told):
    config = {"attack.images_by": "dlg", "attack.images": 3, "attack.clients": 1}
    MEASURES["leakage"].check(config)
    with pytest.raises(SpecError, match=f"{name} cannot be '{wrong}'; {told}"):
        MEASURES["leakage"].check({**config, name: wrong})


def test_a_few_grey_images_are_likened_by_psnr_and_larger_ones_by_ssim_too():
    truth = torch.full((3, 1, 11, 11), 0.5)
    images = truth + torch.tensor([0.1, 0.01, 0.001])[:, None, None, None]
    found = distances.likeness(images, truth)
    assert found["psnr"] == pytest.approx(40, abs=0.01)  # the median of 20, 40 and 60
    assert 0.9 < found["ssim"] <= 1
    assert set(distances.likeness(images[..., :8, :8], truth[..., :8, :8])) == {"psnr"}


def test_without_an_attack_a_server_has_the_nearest_image_of_those_it_knows():
    black, grey, white = torch.zeros(1, 2, 2), torch.full((1, 2, 2), 0.5), torch.ones(1, 2, 2)
    images = torch.stack([grey + 0.1, white - 0.1])
    found = distances.nearest(images, torch.stack([black, white, grey]))
    assert found.equal(torch.stack([grey, white]))
