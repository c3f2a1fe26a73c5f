"""The page of all tables: what it shows of a folder of results, and that it needs nothing else."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from typer.testing import CliRunner

from fedtables.reports.commands import app
from fedtables.reports.pages.build import build_pages
from fedtables.reports.pages.page import (
    cell_of,
    panel_rows,
    render_page,
    spread_of,
)
from fedtables.reports.pages.result_files import find_results
from fedtables.reports.pages.sheet import Sheet
from fedtables.reports.tables.table import blocks
from fedtables.results.files import ResultsError
from tests.reports.drawn import layout, line, table_of
from tests.reports.written_results import COLUMNS, PIXEL, record, write_results


def cell(value, published, metric="accuracy", unit="fraction", **more):
    column = "test=x"
    found = line("a", column, value, published, metric=metric, published_std="", **more)
    (block,) = blocks(layout((column,), unit=unit, key="none/such"), table_of([found]))
    return cell_of(block, {**found, "published_std": None}, best=False)


@pytest.mark.parametrize(
    ("value", "published", "more", "step"),
    [
        ("0.90", "0.90", {}, 0),
        ("0.90", "0.915", {}, 0),
        ("0.90", "0.95", {}, -1),
        ("0.70", "0.90", {}, -2),
        ("0.50", "0.90", {}, -3),
        ("0.95", "0.90", {}, 1),
        ("0.90", "0.40", {}, 3),
        ("70.0", "90.0", {"unit": "percent"}, -2),
        ("10.0", "40.0", {"metric": "hd95"}, 2),  # lower is better
        ("11.0", "12.0", {"metric": "num-classes"}, 0),
    ],
)
def test_the_colour_grows_with_the_difference_from_print(value, published, more, step):
    assert cell(value, published, **more)["step"] == step


def test_a_cell_has_its_number_and_that_of_print_or_why_it_failed():
    found = cell("70.0", "90.0", unit="percent")
    shown = [found[name] for name in ("text", "published", "difference", "failed")]
    assert shown == ["70.00", "90.00", "-20.00", ""]
    failed = cell("", "", status="failed: out of memory")
    assert (failed["text"], failed["failed"]) == ("failed", "failed: out of memory")
    (block,) = blocks(layout(("test=x",), key="none/such"), table_of([line("a", "test=x", "0.5")]))
    assert cell_of(block, None, best=False)["text"] == "–"


def test_costs_of_a_row_are_a_range_where_its_columns_differ():
    assert spread_of([2000000, 2000000], 1e6, 1) == "2.0"
    assert spread_of([2000000, None, 1000000], 1e6, 1) == "1.0 to 2.0"
    assert spread_of([None], 1, 2) == "–"


def test_bytes_and_the_best_of_a_column_stand_in_their_rows(tmp_path):
    write_results(tmp_path)
    (result,) = find_results(tmp_path)
    (block,) = blocks(result.sheet.layout, result.lines)
    rows = panel_rows(result.sheet.layout, block, block.panels[0])
    assert [row["costs"]["MB up"] for row in rows] == ["0.000", "0.000", "2.000"]
    assert [[c["best"] for c in row["cells"]] for row in rows] == [
        [False, False],
        [True, False],
        [False, True],
    ]


def test_budgets_and_rows_with_another_than_their_family_stand_below_the_numbers(tmp_path):
    column = COLUMNS[0]
    lineages = {"client-resnet": ("root",), "global-dlad": ("mine", "root")}
    records = [
        record(row, column, 0.5, local_samples=samples, server_samples=8, lineage=lineages[row])
        for row, samples in (("client-resnet", 1_200), ("global-dlad", 2_400))
    ]
    files = write_results(tmp_path, records)
    sheet = Sheet.read(files.path("layout.json"))
    unequal = {"global-dlad": "not the budget of the first"}
    replace(sheet, layout=replace(sheet.layout, unequal=unequal)).write(files.path("layout.json"))
    text = render_page(find_results(tmp_path))
    body = text.partition("Budget of a run")[2]
    assert '<th scope="row">Client &lt;b&gt;</th><td class="cost">1,200</td>' in body
    assert '<th scope="row">Global (DLAD) ‡</th><td class="cost">2,400</td>' in body
    assert "<li>‡ Global (DLAD): not the budget of the first</li>" in body


def test_results_from_before_samples_were_counted_are_shown_without_them(tmp_path):
    files = write_results(tmp_path)
    path = files.path("records.jsonl")
    old = [json.loads(line) for line in path.read_text().splitlines()]
    for value in old:
        del value["local_samples"], value["server_samples"], value["lineage"], value["sha256"]
    path.write_text("".join(json.dumps(value) + "\n" for value in old))
    sheet = json.loads(files.path("layout.json").read_text())
    del sheet["layout"]["unequal"], sheet["sha256"]
    files.path("layout.json").write_text(json.dumps(sheet))
    body = render_page(find_results(tmp_path)).partition("Budget of a run")[2]
    assert (
        '<th scope="row">Global (DLAD)</th><td class="cost">unknown</td><td'
        ' class="cost">unknown</td><td class="cost">2.000</td>' in body
    )


class Collector(HTMLParser):
    """Tags with their attributes, and the text outside scripts and styles."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text, self.open = [], "", []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if self.open and self.open[-1] == tag:
            self.open.pop()

    def handle_data(self, data):
        self.text += "" if self.open else data


def test_the_page_holds_numbers_claims_card_and_files_and_loads_nothing(tmp_path):
    files = write_results(tmp_path)
    html = render_page(find_results(tmp_path))
    found = Collector(html)
    for text in (
        "Global (DLAD)",
        "0.9600",
        "print 0.",
        "DLAD & averaging differ",
        "yes 3/3",
        "a remark",
        "local.epochs",
        "surrogate",
        "2.000",
    ):
        assert text in found.text
    assert "profile smoke, reduced" in found.text
    assert "public data synthetic" in found.text
    assert "Client <b>" in found.text  # escaped: it is text, no tag
    links = [attrs[name] for _, attrs in found.tags for name in ("src", "href") if attrs.get(name)]
    assert all(link.startswith(("#", "data:", "smoke/dlad/table2.")) for link in links)
    assert not re.search(r"@import|url\(|https?://", html)
    csv = next(
        attrs["href"]
        for tag, attrs in found.tags
        if tag == "a" and attrs.get("download", "").endswith("smoke.csv")
    )
    *_, build = build_pages(tmp_path, tmp_path / "page")
    assert (tmp_path / "page" / csv).read_bytes() == files.path("csv").read_bytes()
    assert build.parent == tmp_path / "page" / "smoke/dlad"
    assert any(
        tag == "img" and base64.b64decode(a["src"].split(",")[1]) == PIXEL
        for tag, a in found.tags
        if a.get("src")
    )


def test_tables_are_tables_for_those_who_do_not_see_them(tmp_path):
    write_results(tmp_path)
    found = Collector(render_page(find_results(tmp_path)))
    assert ("html", {"lang": "en"}) in found.tags
    assert all(
        attrs.get("scope") in ("col", "row")
        for tag, attrs in found.tags
        if tag == "th" and "style" not in attrs and attrs
    )
    assert sum(tag == "caption" for tag, _ in found.tags) >= 2
    assert all(attrs.get("alt") is not None for tag, attrs in found.tags if tag == "img")
    assert all(
        attrs.get("tabindex") == "0" for tag, attrs in found.tags if attrs.get("class") == "scroll"
    )
    ids = [attrs["id"] for _, attrs in found.tags if "id" in attrs]
    assert len(ids) == len(set(ids))


def test_a_sheet_reads_back_as_it_was_written(tmp_path):
    files = write_results(tmp_path)
    sheet = Sheet.read(files.path("layout.json"))
    sheet.write(tmp_path / "again.json")
    assert Sheet.read(tmp_path / "again.json") == sheet
    assert list(sheet.layout.rows) == ["client-resnet", "global-avg", "global-dlad"]


@pytest.mark.parametrize("suffix", ["layout.json", "records.jsonl", "csv", "claims.csv"])
def test_a_damaged_file_is_named(tmp_path, suffix):
    files = write_results(tmp_path)
    files.path(suffix).write_text('{"no": "such thing"}\n')
    with pytest.raises(ResultsError, match=rf"table2\.{suffix}"):
        render_page(find_results(tmp_path))


@pytest.mark.parametrize("name", ["told", "card", "metrics", "clients"])
def test_a_layout_without_seal_whose_lists_are_none_is_named(tmp_path, name):
    files = write_results(tmp_path)
    path = files.path("layout.json")
    sheet = json.loads(path.read_text())
    del sheet["sha256"]
    path.write_text(json.dumps({**sheet, name: 5}))
    with pytest.raises(ResultsError, match=r"table2\.layout\.json"):
        render_page(find_results(tmp_path))


def test_a_page_runs_nothing_that_is_not_its_own(tmp_path):
    write_results(tmp_path)
    page = render_page(find_results(tmp_path))
    (policy,) = re.findall(r'"Content-Security-Policy" content="([^"]*)"', page)
    allowed = dict(part.split(" ", 1) for part in policy.split("; "))
    assert (allowed["default-src"], allowed["img-src"]) == ("'none'", "data:")
    for tag in ("style", "script"):
        (text,) = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert allowed[f"{tag}-src"] == f"'sha256-{digest}'"


def test_the_command_writes_the_page_and_each_table_as_latex_and_markdown(tmp_path):
    refused = CliRunner().invoke(app, ["build", str(tmp_path)])
    assert (refused.exit_code, "holds no table" in refused.stderr) == (2, True)
    write_results(tmp_path / "results")
    out = tmp_path / "out"
    done = CliRunner().invoke(app, ["build", str(tmp_path / "results"), "--output", str(out)])
    assert done.exit_code == 0
    assert (out / "index.html").read_text().startswith("<!doctype html>")
    assert "\\toprule" in (out / "smoke" / "dlad" / "table2.tex").read_text()
    assert (out / "smoke" / "dlad" / "table2.md").read_text() == "# dlad/table2\n"
