"""The evaluator of claims reads every predicate, agrees with print, judges by hand-made values, and
refuses what is not in the grammar.
"""

import math
from collections import Counter

import pytest

from fedtables.reports.tables.claims import (
    COUNTS,
    Outcome,
    Verdict,
    judge,
    judge_claim,
    judge_expectation,
    published_values,
)
from fedtables.reports.tables.predicates import ClaimError, Value, parse
from fedtables.results import published

CLAIMS = [(paper, claim) for paper in published.papers() for claim in published.claims(paper)]


def table(settled=None, **cells: dict[str, float]) -> list[Value]:
    """`table(a={"n=1": 0.5})`: values of the metric acc by row and column."""
    return [
        Value(r, published.parse_column(c), "acc", v, settled)
        for r, columns in cells.items()
        for c, v in columns.items()
    ]


def counted(verdict, *names):
    """How many comparisons came out so."""
    return tuple(verdict.count(*COUNTS[name]) for name in names)


@pytest.mark.parametrize(("paper", "claim"), CLAIMS, ids=lambda value: getattr(value, "id", value))
def test_the_evaluator_agrees_with_two_readers_on_every_printed_claim(paper, claim):
    printed = {name: published_values(paper, name) for name in published.tables(paper)}
    if claim.predicate.startswith("figure:"):
        assert claim.holds_in_print == "n/a"
        return
    verdict = judge(claim.predicate, claim.table, printed)
    [held], total = counted(verdict, "held"), verdict.outcomes.total()
    assert f"{held}/{total}" == claim.cells
    assert {total: "yes", 0: "no"}.get(held, "partly") == claim.holds_in_print


OURS = {
    "table1": table(
        a={"n=1 k=x": 0.9, "n=2 k=x": 0.5}, b={"n=1 k=x": 0.8, "n=2 k=x": 0.6}, c={"n=1 k=x": 0.1}
    )
}


@pytest.mark.parametrize(
    ("predicate", "held", "failed"),
    [
        ("acc[a] > acc[b] for all n", 1, 1),
        ("acc[a] > acc[b] for some n", 1, 0),
        ("acc[a] > acc[b] for most n", 0, 1),
        ("acc[a @ n=1] > acc[b @ n=1]", 1, 0),
        ("acc[a @ n=2] >= acc[b @ n=2] - 0.1", 1, 0),
        ("acc[a @ n=1] > max(acc[b|c @ n=1])", 1, 0),
        ("acc[a @ n=1] > max(acc[* - a @ n=1])", 1, 0),
        ("acc[c @ n=1] < min(acc[a|b @ n=1])", 1, 0),
        ("mean(acc[a]) == 0.7", 1, 0),
        ("count(acc[*]) == 5", 1, 0),
        ("abs(acc[a @ n=1] - acc[b @ n=1]) <= 0.1", 1, 0),
        ("acc[c @ n=1] < acc[b @ n=1] < acc[a @ n=1]", 1, 0),
        ("2 * acc[a @ n=2] == 1", 1, 0),
        ("argmax(acc[* @ n=1]) == argmax(acc[* @ n=2])", 0, 1),
        ("pearson(acc[* @ n=1], acc[* @ n=2]) < 0", 1, 0),
        ("spearman(acc[* @ n=1], acc[* @ n=2]) < 0", 1, 0),
        ("argmax(acc[* @ n=1]) != argmax(acc[* @ n=2])", 1, 0),
        ("argmax(acc[a @ n=*]) == argmax(acc[b @ n=*])", 1, 0),  # both are best at n=1
        ("argmax(acc[a @ n=*]) != argmax(acc[b @ n=*])", 0, 1),
        ("spearman(acc[a @ n=*], acc[b @ n=*]) > 0", 1, 0),
        ("acc[a @ n=1] != acc[a @ n=2]", 1, 0),
        ("acc[a @ n=1] != 0.9", 0, 1),
        ("{n} < 2 for all n", 1, 1),
        ("acc[$row @ n=1] > 0.5 for all row in (a,b,c)", 2, 1),
        ("acc[a @ n=1] > 0.5 and acc[b @ n=1] > 0.85", 0, 1),
        ("acc[a @ n=1] > 0.5 ; acc[b @ n=1] > 0.85", 1, 1),
    ],
)
def test_by_hand(predicate, held, failed):
    verdict = judge(predicate, "table1", OURS)
    assert counted(verdict, "held", "failed", "undecided") == (held, failed, 0)


def test_a_count_of_what_was_not_measured_is_not_zero():
    verdict = judge("count(acc[a]) == 2", "table1", {"table1": table(b={"n=1 k=x": 0.8})}, OURS)
    assert verdict.outcomes == {Outcome.MISSING: 1}


def test_a_difference_within_the_spread_over_seeds_is_not_decidable():
    def seed(a: float) -> dict[str, list[Value]]:
        return {"table1": table(a={"n=1": a}, b={"n=1": 0.5})}

    noisy = [seed(0.3), seed(0.7), seed(0.6)]
    clear = [seed(0.69), seed(0.70), seed(0.71)]
    predicate = "acc[a] > acc[b] for all n"
    assert (
        judge(predicate, "table1", seed(0.5333), seeds=noisy).word
        == "undecided (spread over seeds)"
    )
    assert judge(predicate, "table1", seed(0.70), seeds=clear).word == "holds"


def test_a_difference_of_nothing_at_every_seed_is_decided():
    always = [{"table1": table(a={"n=1": 12.0}, b={"n=1": 12.0})}] * 3
    for predicate, word in (
        ("acc[a @ n=1] == 12", "holds"),
        ("acc[a] >= acc[b] for all n", "holds"),
        ("acc[a] < acc[b] for all n", "does not hold"),
    ):
        assert judge(predicate, "table1", always[0], seeds=always).word == word


@pytest.mark.parametrize(
    ("kinds", "word"),
    [
        ({"HELD": 4}, "holds"),
        ({"SETTLED": 3, "FAILED": 1}, "holds in 3 of 4"),
        ({"FAILED": 4}, "does not hold"),
        ({"MISSING": 4}, "not measured"),
        # All that was cut short points the other way: what holds on such a run is held.
        (
            {"HELD": 1, "CUT_SHORT": 11},
            "holds in 1 of 1 decided; cut short: 11, which all fail so far",
        ),
        ({"CUT_SHORT": 11}, "cut short: 11, which all fail so far"),
        (
            {"UNDECIDED": 2, "CUT_SHORT": 1},
            "undecided (spread over seeds); cut short: 1, which fails so far",
        ),
        ({"SAME": 4}, "no difference"),
        (
            {"HELD": 1, "SAME": 1, "SAME_EARLY": 2},
            "holds in 1 of 1 decided; no difference: 3 (2 before their runs settled)",
        ),
        ({"AT_CHANCE": 1}, "not judged: accuracy at chance"),
        (
            {"HELD": 1, "EARLY": 1, "AT_CHANCE": 2, "MISSING": 1},
            "holds in 2 of 2 decided (1 before its run settled); not judged: 2, accuracy at chance;"
            " 1 of 5 not measured",
        ),
        (
            {"HELD": 2, "FAILED": 1, "UNDECIDED": 1, "MISSING": 2},
            "holds in 2 of 3 decided; 1 undecided (spread over seeds); 2 of 6 not measured",
        ),
    ],
)
def test_verdicts_in_words(kinds, word):
    assert Verdict(Counter({Outcome[name]: n for name, n in kinds.items()})).word == word


@pytest.mark.parametrize(
    "predicate",
    [
        "acc[a]",
        "acc[a] >",
        "frobnicate(acc[a]) > 1",
        "acc[a] ? 1",
        "argmax(acc[a @ n=* k=*]) == argmax(acc[b])",
    ],
)
def test_what_is_not_in_the_grammar_is_refused(predicate):
    with pytest.raises(ClaimError):
        parse(predicate)


def test_names_of_rows_have_no_order():
    with pytest.raises(ClaimError, match="equal or not"):
        judge("argmax(acc[a @ n=*]) < argmax(acc[b @ n=*])", "table1", OURS)


@pytest.mark.parametrize("function", ["pearson", "spearman"])
def test_a_correlation_of_equal_values_or_of_too_few_is_not_measured(function):
    equal = {"table1": table(a={"n=1": 0.5, "n=2": 0.1}, b={"n=1": 0.5, "n=2": 0.2})}
    alone = {"table1": table(a={"n=1": 0.5, "n=2": 0.1})}
    for ours in (equal, alone):
        assert (
            judge(f"{function}(acc[* @ n=1], acc[* @ n=2]) > 0", "table1", ours, shape=OURS).word
            == "not measured"
        )


def test_seeds_that_disagree_about_the_best_row_do_not_decide():
    def seed(a: float, b: float) -> dict[str, list[Value]]:
        return {"table1": table(a={"n=1": a, "n=2": 0.6}, b={"n=1": b, "n=2": 0.5})}

    clear = "argmax(acc[* @ n=1]) == argmax(acc[* @ n=2])"
    agree, split = (
        [seed(0.9, 0.1), seed(0.9, 0.2), seed(0.9, 0.1)],
        [seed(0.9, 0.1), seed(0.1, 0.9), seed(0.9, 0.1)],
    )
    assert judge(clear, "table1", seed(0.9, 0.1), seeds=agree).word == "holds"
    assert (
        judge(clear, "table1", seed(0.6, 0.3), seeds=split).word == "undecided (spread over seeds)"
    )
    # Nor is a comparison of numbers forgotten that follows one of names.
    within = clear + " and acc[b @ n=1] < 0.15"
    assert (
        judge(within, "table1", seed(0.9, 0.13), seeds=agree).word
        == "undecided (spread over seeds)"
    )


FEDSA = {claim.id: claim for claim in published.claims("fedsa")}


def selections(**similarity: list[float]) -> dict[str, list[Value]]:
    """`selections(cifar10=[...])`: transferability of three teachers at one selection after
    another.
    """
    return {
        "figure4a": [
            Value(
                "fedsa",
                {"dataset": d, "selection": str(1 + n // 3), "teacher": str(1 + n % 3)},
                "transferability",
                value,
            )
            for d, values in similarity.items()
            for n, value in enumerate(values)
        ]
    }


def test_the_claim_of_fedsa_figure_4a_is_about_the_order_of_teachers():
    moved, same = (
        [1.0, 0.5, 0.0, 0.0, 0.5, 1.0, 0.0, 0.4, 1.0],
        [1.0, 0.5, 0.0, 1.0, 0.4, 0.0, 0.0, 0.5, 1.0],
    )
    verdict = judge_claim(FEDSA["fedsa-f4a"], "fedsa", selections(cifar10=moved, cifar100=same))
    assert counted(verdict, "held", "failed") == (1, 1)
    assert verdict.fails_at == ("dataset=cifar100",)
    assert (
        judge_claim(FEDSA["fedsa-f4a"], "fedsa", selections(cifar10=moved[:6])).word
        == "not measured"
    )
    assert judge_claim(FEDSA["fedsa-f4a"], "fedsa", {}) is None


FEDIOD = {claim.id: claim for claim in published.claims("fediod")}


def test_a_claim_about_a_figure_is_judged_where_it_was_measured():
    claim = FEDIOD["fediod-f4"]
    values = {
        ("fediod", "1"): 9.0,
        ("fediod", "2"): 3.0,
        ("fedavg", "1"): 1.0,
        ("fedavg", "2"): 4.0,
        ("fedavg", "3"): 2.0,
    }
    ours = {
        "figure4": [Value(row, {"client": client}, "fid", v) for (row, client), v in values.items()]
    }
    verdict = judge_claim(claim, "fediod", ours)
    assert counted(verdict, "held", "failed") == (1, 1)
    assert verdict.fails_at == ("client=2",)
    assert judge_claim(claim, "fediod", {"figure4": []}) is None


FAILS_SO_FAR = "cut short: 1, which fails so far"
ONE_AND_ONE = f"holds in 1 of 1 decided (1 before its run settled); {FAILS_SO_FAR}"


@pytest.mark.parametrize(
    ("predicate", "word"),
    [
        ("acc[a] > acc[b] for all n", ONE_AND_ONE),
        ("acc[b] > acc[a] for all n", ONE_AND_ONE),
        ("acc[a @ n=1] > acc[b @ n=1]", FAILS_SO_FAR),
        ("acc[a @ n=2] > acc[b @ n=2]", "holds (1 before its run settled)"),
        ("acc[c] > acc[b] for all n", "holds"),
        ("acc[b] > acc[c] for all n", "does not hold"),
        ("acc[a] > acc[b] for most n", FAILS_SO_FAR),
        ("acc[a] > acc[b] for some n", "holds (1 before its run settled)"),
        ("acc[b] > acc[c] for some n", "does not hold"),
        # One settled rival is enough, whatever the others would reach.
        ("max(acc[a|c @ n=1]) < acc[b @ n=1]", "does not hold"),
        ("acc[b @ n=1] >= 0.9 * max(acc[a|c @ n=1])", "does not hold"),
        ("min(acc[a|b @ n=1]) > acc[c @ n=1]", "does not hold"),
        ("max(acc[a|b @ n=1]) > acc[c @ n=1]", FAILS_SO_FAR),
        ("acc[b @ n=1] > max(acc[a|c @ n=1]) - 0 * acc[a @ n=1]", FAILS_SO_FAR),
        # mean and argmax read every row's value.
        ("mean(acc[a|c @ n=1]) < acc[b @ n=1]", FAILS_SO_FAR),
        ("argmax(acc[* @ n=2]) == argmax(acc[b|c @ n=2])", "holds (1 before its run settled)"),
    ],
)
def test_what_fails_on_a_run_that_was_cut_short_is_no_failure(predicate, word):
    b, c = {"n=1": 0.5, "n=2": 0.5}, {"n=1": 0.7, "n=2": 0.7}
    values = [*table(settled=False, a={"n=1": 0.3, "n=2": 0.6}), *table(settled=True, b=b, c=c)]
    verdict = judge(predicate, "table1", {"table1": values})
    assert verdict.word == word
    settled, failed, failed_settled = counted(verdict, "settled", "failed", "failed_settled")
    assert settled == (word == "holds") * 2
    assert failed == (word == "does not hold") * (2 if "all" in predicate else 1)
    assert failed_settled == failed


@pytest.mark.parametrize(
    ("predicate", "failed", "settled"),
    [
        ("acc[a] > acc[b] for all n", 3, 2),
        ("acc[a @ n=1] > acc[b @ n=1]", 1, 1),
        ("acc[a @ n=3] > acc[b @ n=3]", 1, 0),
        ("acc[a] > acc[b] for most n", 1, 1),  # two of three have settled, and decide it
        ("acc[a] > acc[b] for some n", 1, 0),  # the third might hold
    ],
)
def test_of_what_fails_it_is_known_or_not_whether_it_had_settled(predicate, failed, settled):
    known = table(settled=True, a={"n=1": 0.1, "n=2": 0.1}, b={"n=1": 0.2, "n=2": 0.2})
    values = [*known, *table(a={"n=3": 0.1}, b={"n=3": 0.2})]
    verdict = judge(predicate, "table1", {"table1": values})
    assert counted(verdict, "failed", "failed_settled") == (failed, settled)


@pytest.mark.parametrize(
    ("of", "word"),
    [
        ((112, 610), "not judged: means over different shares of their values"),
        ((610, 610), "holds"),
        ((1830, 1830), "holds"),  # of three seeds
        (None, "holds"),  # an older record
    ],
)
def test_a_mean_over_fewer_values_is_not_compared_with_one_over_all(of, word):
    values = [
        Value("shy", {}, "hd95", 3.17, counted=of),
        Value("standalone", {}, "hd95", 18.32, counted=(610, 610)),
    ]
    verdict = judge("hd95[shy] < hd95[standalone]", "table1", {"table1": values})
    assert (verdict.outcomes.total(), verdict.word) == (1, word)


@pytest.mark.parametrize(
    ("learnt", "word"),
    [(True, "holds"), (None, "holds"), (False, "not judged: accuracy at chance")],
)
def test_a_cost_is_not_compared_where_accuracy_is_at_chance(learnt, word):
    values = [
        Value("a", {}, "bandwidth-gb", 1.0, learnt=learnt),
        Value("b", {}, "bandwidth-gb", 2.0, learnt=True),
    ]
    for quantified in ("", " for some k", " for most k"):
        bound = [Value(v.row, {"k": "x"}, v.metric, v.number, learnt=v.learnt) for v in values]
        predicate = f"bandwidth-gb[a] < bandwidth-gb[b]{quantified}"
        assert judge(predicate, "table1", {"table1": bound}).word == word


INFINITE, FINITE = (table(a={"n=1": a}, b={"n=1": b}) for a, b in ((math.inf, 0.5), (0.7, 0.5)))


@pytest.mark.parametrize(
    ("operator", "word"), [("==", "holds"), ("<=", "holds"), (">", "does not hold")]
)
def test_two_infinite_values_are_equal(operator, word):
    """As costs are without privacy."""
    ours = {"table1": table(a={"n=1": math.inf}, b={"n=1": math.inf})}
    assert judge(f"acc[a] {operator} acc[b] for all n", "table1", ours).word == word


@pytest.mark.parametrize(
    ("seeds", "word"),
    [([INFINITE] * 3, "holds"), ([FINITE, INFINITE, FINITE], "undecided (spread over seeds)")],
)
def test_a_difference_that_is_infinite_for_every_seed_decides_and_for_one_alone_does_not(
    seeds, word
):
    per_seed = [{"table1": values} for values in seeds]
    verdict = judge("acc[a] > acc[b] for all n", "table1", {"table1": INFINITE}, seeds=per_seed)
    assert verdict.word == word


@pytest.mark.parametrize(
    ("ours", "settled", "word"),
    [(0.9780, True, "holds"), (0.9721, True, "does not hold"), (0.9721, False, FAILS_SO_FAR)],
)
def test_an_expectation_is_held_against_the_number_that_the_paper_prints(ours, settled, word):
    """Table II of DLAD has 0.9821 for MNIST with IID clients."""
    predicate = (
        "abs(accuracy[global-dlad] - print:table2:accuracy[global-dlad @ dataset=mnist]) <= 0.0099"
        " for all distribution"
    )
    values = [Value("global-dlad", {"distribution": "iid"}, "accuracy", ours, settled)]
    verdict = judge_expectation(predicate, "dlad", "trial", {"trial": values})
    assert (verdict.word, verdict.outcomes.total()) == (word, 1)
    assert counted(verdict, "settled") == (int(word == "holds"),)
