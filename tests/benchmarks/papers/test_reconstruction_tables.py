"""FedAD's Tables 6 to 8 and FedIOD's Table 9: a cell or a derived column for every printed number,
and the papers' settings in them.
"""

import pytest

from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.expansion import expand
from fedtables.benchmarks.tables.selection import Selection
from fedtables.benchmarks.tables.spec import PROFILES
from fedtables.results.published import parse_column, published_table

SAME_AS_TABLE_7 = ("fl-mrcm", "fedad")
"""Rows of FedIOD's Table 9 that are FedAD's Table 7's in print."""


def config_of(name, profile="paper", add=(), **where):
    """The configuration of the first cell with this row and these keys; sites have commas."""
    for cell in expand(*registry.find_table(name), Selection(profile=profile, add=add)):
        if where.items() <= {"row": cell.row, **parse_column(cell.column)}.items():
            return dict(cell.config)
    raise AssertionError(where)


def printed(name):
    """The numbers of a table by row, column and metric."""
    return {
        (p.row, p.column, p.metric): p.value for p in published_table(name) if p.value is not None
    }


def test_rows_of_fediods_table_are_in_print_those_of_fedads():
    ours, theirs = printed("fediod/table9"), printed("fedad/table7")
    shared = {place: value for place, value in ours.items() if place[0] in SAME_AS_TABLE_7}
    assert len(shared) == 2 * 6 * 2
    assert shared.items() <= theirs.items()


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("row", SAME_AS_TABLE_7)
def test_they_have_the_same_networks_training_and_data_in_both(row, profile):
    where = {"row": row, "test": "i", "modality": "t2", "train": "b,f,i"}
    ours = config_of("fediod/table9", profile, **where)
    theirs = config_of("fedad/table7", profile, **where)
    names = {name for name in ours.keys() & theirs.keys() if name.partition(".")[0] != "public"}
    used = {"client", "server"}

    def resolved(config):
        networks = {part: config[f"network.{config[f'network.{part}']}"] for part in used}
        plain = {n: config[n] for n in names if n.partition(".")[0] != "network"}
        return networks | plain

    assert resolved(ours) == resolved(theirs)
    assert ours["public.name"] == ("oasis3-t2" if row == "fedad" else "")


@pytest.mark.parametrize("profile", PROFILES)
def test_the_floor_does_not_learn_enough_to_move(profile):
    config = config_of("fedad/table7", profile, add=("zero-filled",), row="zero-filled")
    assert config[f"network.{config['network.client']}"] == "unchanged"
    assert config["local.lr"] == 1e-12
