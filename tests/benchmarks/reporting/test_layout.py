"""The labels of a table say what its numbers were made from."""

from dataclasses import replace

from fedtables.benchmarks.reporting.layout import layout_of
from fedtables.benchmarks.tables.selection import Selection
from fedtables.benchmarks.tables.spec import Row
from tests.benchmarks.reporting.scores import COLUMN, DIGITS, scored


def test_the_layout_names_every_data_set_once_the_public_one_apart(run):
    public = {**DIGITS, "asked": "cifar100"}
    records = [
        scored("gan", 2.0, 1.0),
        scored("gan mimic=eq8", 3.0, 2.0, public=public),
        scored("gan", 2.0, 1.0, seed=1),
    ]
    layout = layout_of(run, records)
    stand_in = [label for label in layout.labels if "stand-in" in label]
    assert stand_in[0].startswith("cifar10 stand-in: ")
    assert stand_in[1].startswith("public data of methods that use any: cifar100 stand-in: ")
    assert len(stand_in) == 2
    assert layout.seeds == "1 to 2 seeds"
    assert layout_of(run, records[:2]).seeds == "1 seed"
    assert layout.unit == "percent"


def test_a_row_that_breaks_the_contract_is_marked_and_says_how(run):
    broken = scored("gan", 2.0, 1.0, contract=("it reads labels", "it forgets"))
    layout = layout_of(run, [broken, scored("gan mimic=eq8", 3.0, 2.0)])
    assert [title.endswith(" ✗") for title in layout.rows.values()] == [True, False]
    title = layout.rows["gan"].removesuffix(" ✗")
    assert layout.notes[0] == (
        f"✗ {title} breaks the contract and is not ranked: it reads labels; it forgets"
    )

    # As an earlier command titled it, whose plug-in this one is not given.
    known = replace(run.table.rows[0], title=f"{title} ✗")
    run.table = replace(run.table, rows=(known, *run.table.rows[1:]))
    assert layout_of(run, [broken]).rows == {"gan": f"{title} ✗"}


def test_the_papers_own_row_is_the_last_unless_the_table_names_another_or_none(run):
    last = run.table.rows[-1].key
    assert layout_of(run, [scored(last, 2.0, 1.0)]).own == last
    for own in ("gan", ""):
        run.table = replace(run.table, own=own)
        assert layout_of(run, [scored(last, 2.0, 1.0)]).own == own


def test_pictures_of_scores_say_by_which_networks(run):
    records = [
        scored("gan", 2.0, 1.0, statistic="by a network"),
        scored("gan", 2.0, 1.0, seed=1, statistic="by a network"),
    ]
    run.table = replace(run.table, measure="samples")
    assert layout_of(run, records).labels.count("by a network") == 1
    run.table = replace(run.table, measure="final")
    assert "by a network" not in layout_of(run, records).labels


def test_a_row_under_another_protocol_than_the_tables_says_so(run):
    records = [scored("gan", 2.0, 1.0), scored("gan mimic=eq8", 3.0, 2.0, protocol="released")]
    assert layout_of(run, records).rows == {
        "gan": "gan",
        "gan mimic=eq8": "gan mimic=eq8 [released]",
    }
    released = replace(run, selection=Selection(protocol="released"))
    assert layout_of(released, records).rows == {
        "gan": "gan [paper]",
        "gan mimic=eq8": "gan mimic=eq8",
    }


def test_a_layout_knows_the_methods_of_its_rows_and_the_chance_of_its_columns(run):
    layout = layout_of(run, [scored("gan", 2.0, 1.0)])
    assert layout.methods == {"gan": "fediod"}
    assert layout.chance == {COLUMN: 0.1}  # of the ten digits


def of_method(row, *lineage, **config):
    return scored(row, 2.0, 1.0, lineage=lineage, config=config, local_samples=0)


def added(run, *keys):
    """The run with a row of FedAvg, which its paper names, and rows of methods of one's own."""
    rows = tuple(Row(key, key, key.title()) for key in ("fedavg", *keys))
    table = replace(run.table, rows=(*run.table.rows, rows[0]))
    return replace(
        run,
        paper=replace(run.paper, tables=(table,)),
        table=replace(table, rows=(*run.table.rows, *rows)),
    )


def test_a_row_that_has_the_settings_of_its_family_says_whose(run):
    run = added(run, "mine")
    records = [of_method("fedavg", "fedavg"), of_method("mine", "mine", "between", "fedavg")]
    assert layout_of(run, records).notes == (
        "Mine derives from fedavg and has the paper's settings of it",
    )


def test_a_row_of_no_family_says_what_it_has_and_how_its_rounds_differ(run):
    run = added(run, "mine")
    fedavg = of_method("fedavg", "fedavg", **{"fedavg.rounds": 3})
    text = (
        "Mine belongs to no method of the paper: its local and server plans are the table's, its"
        " other settings its own"
    )
    for rounds, more in (
        ({}, ""),
        ({"mine.rounds": 3}, ", with rounds = 3"),
        ({"mine.rounds": 20}, ", with rounds = 20 (Fedavg 3)"),
    ):
        records = [fedavg, of_method("mine", "mine", **rounds)]
        assert layout_of(run, records).notes == (text + more,)


def test_a_row_with_another_budget_than_its_familys_is_in_the_layout(run):
    run = added(run, "mine")
    fedavg, own = of_method("fedavg", "fedavg"), of_method("mine", "mine", "fedavg")
    assert layout_of(run, [fedavg, own]).unequal == {}
    more = [replace(record, bytes_up=count) for record, count in ((fedavg, 100), (own, 150))]
    assert layout_of(run, more).unequal == {"mine": "another budget than Fedavg: bytes +50.0 %"}


def test_many_ways_to_a_number_are_left_to_the_notes_and_public_sets_share_a_label(run):
    run.table = replace(run.table, measure="samples")
    made = [
        scored(
            "gan",
            2.0,
            1.0,
            seed=seed,
            statistic=f"on {seed} images",
            public={**DIGITS, "asked": f"cifar{10 ** (1 + seed % 2)}"},
        )
        for seed in range(3)
    ]
    assert {"on 0 images", "on 1 images"} <= {*layout_of(run, made[:2]).labels}
    labels = layout_of(run, made).labels
    assert not any("images" in label for label in labels)
    (public,) = (label for label in labels if label.startswith("public data"))
    assert public.count("stand-in: ") == 2
    assert " and cifar100 stand-in: " in public
