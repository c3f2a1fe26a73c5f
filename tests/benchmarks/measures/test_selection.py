"""FedSA's Figure 4a: numbers of hand-made histories, and of a real fit."""

from benchmarks.measures.teachers import selections
from federation.data import Checkpoint
from tests.methods.private_servers import private_servers, quick


def test_every_selection_has_a_score_scaled_over_its_teachers_and_a_count_for_each():
    history = {
        "transferability/1": [1.0, 5.0],
        "transferability/2": [3.0, 5.0],
        "transferability/3": [2.0, 5.0],
        "selected/1": [0.0, 1.0],
        "selected/2": [2.0, 1.0],
        "selected/3": [1.0, 1.0],
    }
    fitted = Checkpoint("cnn-small", 3, {}, "server", "", history)
    found, _ = selections([fitted], {"partition.clients": 3})
    scores = {m.column: m.value for m in found if m.metric == "transferability"}
    counts = {m.column: m.value for m in found if m.metric == "selected"}
    columns = [
        f"selection={number} teacher={teacher}" for number in (1, 2) for teacher in (1, 2, 3)
    ]
    assert list(scores) == list(counts) == columns
    assert list(scores.values()) == [0.0, 1.0, 0.5, 0.0, 0.0, 0.0]
    assert list(counts.values()) == [0.0, 2.0, 1.0, 1.0, 1.0, 1.0]


def test_the_selections_of_a_real_fit_add_up():
    federation = private_servers(3)
    found, _ = selections([quick(rounds=3, selected=2).fit(federation)], {"partition.clients": 3})
    for number in (1, 2, 3):
        own = [m for m in found if m.column.startswith(f"selection={number} ")]
        assert sum(m.value for m in own if m.metric == "selected") == 2
        scores = [m.value for m in own if m.metric == "transferability"]
        assert (min(scores), max(scores)) == (0, 1)
