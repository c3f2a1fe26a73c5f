"""What a checkout of the repository does to files whose checksums are kept."""

import subprocess

from fedtables.results.sourcecode import ROOT


def test_a_checkout_changes_the_line_ends_of_no_file():
    files = ROOT.joinpath("results", "published").rglob("*")
    names = [path.relative_to(ROOT).as_posix() for path in files if path.is_file()]
    told = subprocess.run(
        ["git", "check-attr", "eol", "--", *names, "docs/results/images/page.png"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(names) > 30
    assert {line.rpartition(": ")[2] for line in told.stdout.splitlines()} == {"lf"}
