"""Plans: the same code path without the work, with hand-computed sizes."""

from __future__ import annotations

import re

from benchmarks import registry
from benchmarks.cells import Selection, expand
from benchmarks.plan import make_plan

ONLY = {"dataset": "mnist", "distribution": "niid1"}


def planned(table: str, profile: str, **only: str):
    paper, found = registry.find_table(table)
    return make_plan(expand(paper, found, Selection(profile=profile, only={k.replace("_", "-"): v for k, v in only.items()})))


def test_one_column_counts_its_samples_by_hand():
    plan = planned("dlad/table2", "paper", **ONLY)
    # Clients 10 x 50 epochs x 6,000; classifiers 10 x 20 x (6,000 + 48,000); three global models of 100 x 48,000.
    assert plan.meter.training_samples == 10 * 50 * 6_000 + 10 * 20 * 54_000 + 3 * 100 * 48_000
    assert plan.distinct == {"local-model": 10, "client-classifier": 10, "public-outputs": 20, "global-model": 3}
    assert plan.needed["local-model"] == 40


def test_table_four_trains_sixty_clients_per_distribution():
    plan = planned("dlad/table4", "smoke", distribution="niid1")
    assert plan.distinct["local-model"] == 60
    assert plan.distinct["client-classifier"] == 60
    assert plan.needed["client-classifier"] == (5 + 10 + 20 + 30) * 2 + 10 + 20 + 30


def test_dlad_sends_models_and_classifiers_and_the_baseline_models_only():
    plan = planned("dlad/table2", "paper", **ONLY)
    model, classifier = 4 * (11_175_370 + 9_600) + 160, 4 * (11_170_753 + 9_600) + 160  # ResNet-18 on grey images
    headers = plan.bytes_up["average-distillation"] - 10 * model
    assert 0 < headers < 10 * 20_000
    assert abs(plan.bytes_up["dlad"] - 10 * (model + classifier) - 2 * headers) < 10 * 64
    assert plan.bytes_up["standalone"] == 0


def test_absent_data_are_planned_at_their_official_size(tmp_path):
    plan = planned("dlad/table2", "paper", dataset="cinic10", distribution="iid", row="client-resnet")
    assert plan.meter.training_samples == 10 * 50 * 20_000
    assert re.search("not present.*CINIC-10.tar.gz", plan.data["cinic10"])
