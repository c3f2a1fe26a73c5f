"""Which tables of a folder a leaderboard is made of; pictures and Markdown of a folder, again from
what lies in it.
"""

import os
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from fedtables.reports.commands import app
from fedtables.reports.pages.build import (
    build_pages,
    gallery_page,
    redraw_results,
    shown_results,
    standings_in,
)
from fedtables.reports.pages.sheet import Sheet, commits
from fedtables.results.files import ResultsError
from fedtables.results.sourcecode import ROOT
from tests.reports.tables.test_standings import LINES, line, scored
from tests.reports.tables.test_standings import record as run_of
from tests.reports.written_results import COLUMNS, PIXEL, record, write_results


def table(measure, lines, *, profile="cpu", paper="toys", x_axis="", records=(), published=True):
    shown = scored([{"data": "toys", **one, "profile": profile} for one in lines], records)
    shown.layout.x_axis = x_axis
    return SimpleNamespace(
        profile=profile,
        paper=paper,
        sheet=SimpleNamespace(measure=measure, layout=shown.layout),
        as_published=published,
        shown=shown,
    )


def at(entry, more):
    return {**entry, "column": f"{entry['column']} {more}"}


CARD = table("scorecard", LINES)
PRIVATE = [at(line("plain", "none", "accuracy", 40), "epsilon=4")]
LEAKING = [at(line("floor", "in", "psnr", 17), "client=average")]
FLOOR = [run_of(row="floor", config={"attack.images_by": "nearest-public"})]


def test_privacy_and_leakage_are_found_by_axis_and_measure_beside_the_scorecard():
    private = table("final", PRIVATE, x_axis="epsilon")
    leaking = table("leakage", LEAKING, records=FLOOR)
    found = standings_in([CARD, private, leaking])["cpu"]
    assert found.metrics == ["accuracy", "floor-psnr", "accuracy-at-epsilon-4"]
    assert standings_in([private, leaking]) == {}


def test_those_of_another_paper_or_profile_or_of_a_users_own_settings_are_left_out():
    elsewhere = [
        table("leakage", LEAKING, records=FLOOR, paper="others"),
        table("leakage", LEAKING, records=FLOOR, profile="smoke"),
        table("leakage", LEAKING, records=FLOOR, published=False),
        table("final", PRIVATE),
    ]
    assert standings_in([CARD, *elsewhere])["cpu"].metrics == ["accuracy"]


def test_every_profile_has_standings_of_its_own_and_the_largest_comes_first():
    own = line("plain", "none", "accuracy", 10)
    found = standings_in([table("scorecard", [own], profile="smoke"), CARD])
    assert list(found) == ["cpu", "smoke"]
    for profile, of_it in found.items():
        assert {c.profile for c in of_it.conditions} == {profile}
    assert found["cpu"].means("accuracy").to_dict() == {"plain": 80, "public": 80}
    assert found["smoke"].means("accuracy").to_dict() == {"plain": 10}


COMMAND = "fedtables reproduce dlad/table2 --only dataset=mnist"


@pytest.fixture
def files(tmp_path):
    """A folder of one table, with the command that made it."""
    files = write_results(tmp_path)
    path = files.path("layout.json")
    replace(Sheet.read(path), command=COMMAND, metrics=("accuracy",)).write(path)
    return files


def test_a_table_is_drawn_in_its_place_in_three_forms_and_its_markdown_written(tmp_path, files):
    assert redraw_results(tmp_path) == [files.path("png")]
    assert files.path("png").read_bytes() != PIXEL
    assert files.path("svg").stat().st_size > 10_000
    assert files.path("pdf").read_bytes().startswith(b"%PDF")
    page = files.path("md").read_text()
    assert f"`{COMMAND}`. Computed at commit {'f' * 12}." in page
    assert "| DLAD & averaging differ | holds | yes 3/3 |" in page
    assert "**0.9700** (0.9806, -0.0106)" in page


def test_elsewhere_only_pictures_are_written_and_the_same_again(tmp_path, files):
    before = {path: path.read_bytes() for path in files.base.parent.iterdir()}
    (drawn,) = redraw_results(tmp_path, tmp_path / "out")
    assert drawn == tmp_path / "out" / "smoke" / "dlad" / "table2.png"
    assert {path: path.read_bytes() for path in files.base.parent.iterdir()} == before
    redraw_results(tmp_path)
    assert files.path("png").read_bytes() == drawn.read_bytes()


def test_no_picture_or_page_takes_the_place_of_a_table_file(tmp_path, files):
    other = write_results(tmp_path / "other").path("png")
    before = other.read_bytes()
    with pytest.raises(ResultsError, match=r"table2\.png is a file of a table; name another"):
        redraw_results(tmp_path / "other", tmp_path)
    assert other.read_bytes() == before
    for absent in ("html", "tex"):
        with pytest.raises(ResultsError, match=rf"table2\.{absent} is a file of a table"):
            build_pages(tmp_path / "other", files.path(absent))
        assert not files.path(absent).exists()


def test_the_command_says_how_many(tmp_path, files):
    done = CliRunner().invoke(app, ["draw", str(tmp_path), "--output", str(tmp_path / "out")])
    assert (done.exit_code, done.stdout) == (0, f"drew 1 pictures under {tmp_path / 'out'}\n")
    done = CliRunner().invoke(app, ["draw", str(tmp_path / "out")])
    assert done.exit_code == 2
    assert "holds no table" in done.stderr


def test_commits_are_told_with_their_number_of_cells():
    machine = {"commit": "e" * 40, "dirty": True}
    one, other = record("a", COLUMNS[0], 1.0), record("b", COLUMNS[0], 1.0, machine=machine)
    assert commits([one]) == f"commit {'f' * 12}"
    assert commits([one, other, one]) == (
        f"commits {'f' * 12} (2 cells), {'e' * 12} with changes (1 cell)"
    )
    assert commits([record("a", COLUMNS[0], 1.0, machine={})]) == ""


@pytest.mark.parametrize(
    ("settings", "environment"),
    [
        ("", {"MPLBACKEND": "nonsense"}),
        ("backend: nonsense\nsavefig.bbox: tight\naxes.facecolor: black\n", {}),
    ],
)
def test_a_picture_hangs_on_no_setting_of_a_user(tmp_path, files, settings, environment):
    (tmp_path / "matplotlibrc").write_text(settings)
    command = [sys.executable, "-m", "fedtables", "reports", "draw", str(tmp_path), "--output"]
    for folder, asked in (("plain", {}), ("asked", {"MATPLOTLIBRC": str(tmp_path), **environment})):
        done = subprocess.run(
            [*command, str(tmp_path / folder)],
            cwd=ROOT,
            env={**os.environ, **asked},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout.split("pictures")[0]) == (0, "drew 1 ")
    plain, asked = (tmp_path / name / "smoke/dlad/table2.svg" for name in ("plain", "asked"))
    assert plain.read_bytes() == asked.read_bytes()


def test_a_notebook_keeps_the_backend_that_it_asked_for():
    program = (
        "import fedtables.reports.drawing, matplotlib, os; print(matplotlib.rcParams['backend'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, "MPLBACKEND": "svg"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "svg\n"


def test_no_claims_are_counted_of_a_table_with_settings_of_somebodys_own(tmp_path):
    own = write_results(tmp_path / "results", variant="set-1234")
    (tmp_path / "results" / "smoke").rename(tmp_path / "results" / "cpu")
    assert own.path("csv").name == "table2.set-1234.csv"
    page = gallery_page(shown_results([tmp_path / "results"]), [], tmp_path / "g.md")
    assert "| dlad/table2 | 48 |" in page
    assert "hold in print" not in page


def test_smoke_tables_and_tables_without_a_picture_are_left_out(tmp_path):
    files = write_results(tmp_path)
    assert shown_results([tmp_path]) == []
    (tmp_path / "smoke").rename(tmp_path / "cpu")
    assert len(shown_results([tmp_path])) == 1
    (tmp_path / "cpu" / "dlad" / files.path("png").name).unlink()
    assert shown_results([tmp_path]) == []
