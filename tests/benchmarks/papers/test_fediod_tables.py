"""FedIOD's tables share teachers and fits."""

from fedtables.benchmarks.running.plan import make_plan
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.expansion import expand
from fedtables.benchmarks.tables.selection import Selection

SAME_SETTING = {"method": "fediod,fedkd-gong", "dataset": "cifar10", "alpha": "0.1"}


def test_cells_that_differ_only_in_what_they_measure_share_a_fit_and_all_share_teachers():
    # Table 6 has eight fits; Table 7 shares four of its five with them, Table 1 its FedIOD; FedKD
    # and the released row are new.
    asked = {
        "fediod/table6": Selection(),
        "fediod/table7": Selection(),
        "fediod/table1": Selection(add=("fediod-released",), only=SAME_SETTING),
    }
    tables = [expand(*registry.find_table(name), chosen) for name, chosen in asked.items()]
    plan = make_plan([cell for cells in tables for cell in cells])
    assert plan.distinct["fit"] == 8 + 1 + 2
    assert plan.needed["fit"] == plan.distinct["fit"] + 4 + 1
    assert plan.distinct["local-model"] == 4
