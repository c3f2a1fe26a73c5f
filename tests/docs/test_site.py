"""The site takes in what pages link, and rewrites links. The strict build is `tox run -e docs`."""

from tests.tools.site import DOCS, GENERATED, ROOT, outside, rewritten


def test_links_lead_to_where_the_site_has_the_files():
    page = DOCS / "results" / "dlad.md"
    table = "results/cpu/dlad/table2.md"
    for before, after in (
        (f"[a](../../{table})", f"[a](../repository/{table})"),
        ("[a](fedad.md#x) [b](#y)", "[a](fedad.md#x) [b](#y)"),
        ("![a](images/page.png)", "![a](images/page.png)"),
        ("[a](nothing.md) [b](https://example.org/c.md)",) * 2,
        ("[a](../../results/cpu)",) * 2,
    ):
        assert rewritten(before, page) == after
    assert rewritten("[a](docs/index.md)", ROOT / "README.md") == "[a](../index.md)"


def test_files_that_linked_files_link_are_taken_too():
    assert {ROOT / "README.md", ROOT / "CONTRIBUTING.md"} <= {*outside()}  # README links the other


def test_generated_pages_have_every_command_and_paper():
    commands, settings = (write() for write in GENERATED.values())
    assert "`fedtables reproduce`" in commands
    assert "`fedtables reports compare`" in commands
    assert all(f"## {paper}" in settings for paper in ("dlad", "fedsa", "fedad", "fediod"))
