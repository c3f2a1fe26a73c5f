"""Standalone: each client keeps its own model, and nothing crosses."""

from fedtables.baselines.standalone import Standalone
from tests.federation.tiny import make_federation


def test_every_client_keeps_the_model_it_trained():
    federation = make_federation(clients=3)
    models = Standalone().fit(federation)
    assert [model.owner for model in models] == ["client-0", "client-1", "client-2"]
    assert [model.lineage for model in models] == [
        model.lineage for model in federation.local_models()
    ]
