"""A few of the wrong command lines of `tests/fuzz_commands.py`, which runs as many as asked for."""

from __future__ import annotations

import itertools

import pytest

from tests.fuzz_commands import OTHER, REFUSED, Line, commands, fuzz, judge, lines, world


@pytest.fixture(scope="module")
def where():
    with world() as found:
        yield found


def test_the_lines_are_of_all_commands_and_repeat_under_their_seed(where):
    some = list(itertools.islice(lines(where, 1), 200))
    assert {(line.module, line.arguments[0]) for line in some} >= commands().keys()
    assert some == list(itertools.islice(lines(where, 1), 200))
    assert some != list(itertools.islice(lines(where, 2), 200))


def test_no_wrong_line_ends_in_a_traceback_or_changes_a_table(where):
    quick = (
        line
        for line in lines(where, 5)
        if not line.anew and line.arguments[0] not in ("attack", "sweep", "data", "plan")
    )
    outcome = fuzz(where, list(itertools.islice(quick, 60, 90)))
    assert not outcome.wrong
    assert outcome.counts[REFUSED] > 15


def test_what_is_printed_before_it_is_refused_is_seen(where, monkeypatch):
    monkeypatch.setattr("tests.fuzz_commands._run", lambda line, env: Done())
    assert judge(Line("benchmarks", ()), where)[0] == OTHER


class Done:
    returncode, stdout, stderr = 2, "16 cells\n", "error: no\n"
