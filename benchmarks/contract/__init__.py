"""The contract that every method keeps: what it promises, and the fits by which that is seen."""

from benchmarks.contract.fits import BrokenContractError, Fit, NotJudgedError, shortened
from benchmarks.contract.promises import (
    CHECKS,
    contract_method,
    declares_what_it_sends,
    finds_nothing_elsewhere,
    is_deterministic,
    keeps_its_budget,
    keeps_private_samples_private,
    learns,
    learns_from_clients_only_by_the_channel,
    learns_the_same_by_graphs,
    leaves_data_alone,
    never_reads_public_labels,
    never_reads_the_test_set,
    place,
)

__all__ = [
    "CHECKS",
    "BrokenContractError",
    "Fit",
    "NotJudgedError",
    "contract_method",
    "declares_what_it_sends",
    "finds_nothing_elsewhere",
    "is_deterministic",
    "keeps_its_budget",
    "keeps_private_samples_private",
    "learns",
    "learns_from_clients_only_by_the_channel",
    "learns_the_same_by_graphs",
    "leaves_data_alone",
    "never_reads_public_labels",
    "never_reads_the_test_set",
    "place",
    "shortened",
]
