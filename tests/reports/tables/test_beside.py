"""Accuracy under privacy and what leaks, beside the numbers of a scorecard, by hand."""

import pytest

from fedtables.reports.tables.beside import Attack, attack_on, with_leakage, with_private
from fedtables.reports.tables.standings import Standing, standings_of
from tests.reports.tables.test_standings import LINES, line, record, scored

TOYS = scored([{**one, "data": "toys"} for one in LINES])


def test_accuracy_under_privacy_stands_in_the_conditions_of_its_data_and_public_images():
    def private(row, public, epsilon, value, **more):
        made = line(row, public, "accuracy", value, data="toys", **more)
        return {**made, "column": f"{made['column']} epsilon={epsilon}"}

    found = standings_of([TOYS])
    lines = [
        private("plain", "none", "1", 40, std=2.0),
        private("plain", "none", "inf", 80),
        private("public", "in", "1", 50),
        private("public", "in", "4", 60, settled="no"),
        private("stranger", "in", "4", 60),
        {**private("public", "in", "10", 70), "data": "others"},
        private("public", "in", "10", "", status="failed"),
    ]
    found = with_private(found, [TOYS], [scored(lines)])
    at_one, at_four = (found.frame(f"accuracy-at-epsilon-{n}") for n in (1, 4))
    assert at_one.loc["plain"].tolist() == [40, 40]
    assert at_one.loc["public"].fillna(0).tolist() == [50, 0]
    assert at_four.loc["public"].fillna(0).tolist() == [60, 0]
    names = [name for name in found.metrics if "epsilon" in name]
    assert names == ["accuracy-at-epsilon-1", "accuracy-at-epsilon-4"]
    inside, _ = (condition.key for condition in found.conditions)
    assert found.cut_short("public", "accuracy-at-epsilon-4") == {inside}
    assert found.cut_short("public", "accuracy-at-epsilon-1") == set()
    at_one = found.of("plain", "accuracy-at-epsilon-1").loc[inside]
    assert (at_one["std"], at_one["n"]) == (2, 2)


ATTACKS = {
    "gradient": Attack("inverting", "gradient", "averaging"),
    "update": Attack("inverting", "update", "averaging"),
    "made": Attack("nearest-generated", "gradient", "generating"),
    "floor": Attack("nearest-public", "gradient", "distilling"),
}


@pytest.mark.parametrize(
    ("sends", "receives", "more", "row"),
    [
        ({"parameters", "labels"}, {"parameters"}, {}, "update"),
        ({"parameters"}, set(), {}, None),
        ({"gradients"}, {"parameters"}, {}, "gradient"),
        ({"gradients"}, {"images"}, {}, None),
        ({"gradients"}, {"images"}, {"method": "generating"}, "made"),
        ({"logits"}, set(), {"properties": {"privacy": True}}, "floor"),
        (set(), set(), {"properties": {"privacy": True}}, None),
        ({"features"}, set(), {"properties": {"privacy": False}}, None),
    ],
    ids=[
        *("averages", "sends a network of its own once", "sends gradients"),
        *("sends those of what came down", "generates", "answers", "sends nothing", "features"),
    ],
)
def test_what_is_attacked_is_what_a_client_sends(sends, receives, more, row):
    standing = Standing("x", "X", False, sends=sends, receives=receives, **more)
    assert attack_on(standing, ATTACKS) == row


def test_what_leaks_stands_beside_the_floor_of_the_same_public_images():
    found = standings_of([TOYS])
    inside, outside = (condition.key for condition in found.conditions)
    _, plain, public = found.methods
    plain.sends, plain.receives = {"parameters"}, {"parameters"}
    public.sends, public.properties = {"logits"}, {"privacy": True}

    def leak(row, where, metric, value, client="average", **more):
        made = line(row, where, metric, value, data="toys", **more)
        return {**made, "column": f"{made['column']} client={client}"}

    lines = [
        leak("update", "none", "psnr", 13, std=1.0),
        leak("update", "none", "psnr", 99, client="1"),
        leak("update", "none", "accuracy", 99),
        leak("floor", "in", "psnr", 17),
        leak("floor", "out", "psnr", 12),
        leak("floor", "out", "ssim", 0.5),
    ]
    configs = {
        "update": {"attack.images_by": "inverting", "attack.shares": "update"},
        "floor": {"attack.images_by": "nearest-public", "attack.shares": "gradient"},
    }
    records = [record(row=row, config=config) for row, config in configs.items()]
    leaked = with_leakage(found, [TOYS], [scored(lines, records)])

    def by_key(row, metric, column="value"):
        return leaked.of(row, metric)[column].to_dict()

    assert by_key("plain", "leaked-psnr") == {inside: 13, outside: 13}
    assert by_key("plain", "leaked-psnr", "std") == {inside: 1, outside: 1}
    assert by_key("plain", "floor-psnr") == {inside: 17, outside: 12}
    assert by_key("public", "leaked-psnr") == {inside: 17, outside: 12}
    assert by_key("public", "leaked-ssim") == by_key("public", "floor-ssim") == {outside: 0.5}
    assert by_key("bound", "floor-psnr") == {}
    elsewhere = [{**one, "data": "others"} for one in lines]
    assert with_leakage(found, [TOYS], [scored(elsewhere, records)]).metrics == ["accuracy"]
