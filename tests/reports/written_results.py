"""A small folder of results, as `reproduce` leaves it, for tests of the page."""

from pathlib import Path

from fedtables.reports.pages.sheet import Sheet
from fedtables.reports.tables.table import Layout
from fedtables.results.record import Measurement, Record
from fedtables.results.store import TableFiles, summarise, write_csv
from tests.records import made_record

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360f8cf500f0003030101"
    "b4d2d1c30000000049454e44ae426082"
)
"""A PNG of one pixel."""
COLUMNS = ("dataset=mnist distribution=iid", "dataset=mnist distribution=niid1")
ROWS = {
    "client-resnet": "Client <b>",
    "global-avg": "Global (avg.)",
    "global-dlad": "Global (DLAD)",
}
VALUES = {"client-resnet": (0.95, 0.30), "global-avg": (0.97, 0.45), "global-dlad": (0.96, 0.90)}


def record(row: str, column: str, value: float, seed: int = 0, **changes: object) -> Record:
    known = {
        "table": "dlad/table2",
        **{"row": row, "column": column, "seed": seed, "cell": f"{row}{column}{seed}"},
        "measurements": (Measurement("accuracy", value),),
        "data": {
            "asked": "mnist",
            "used": "digits",
            "origin": "surrogate",
            "digest": "ab" * 32,
            "note": "",
        },
        "public": {
            "asked": "cifar100",
            "used": "shapes",
            "origin": "synthetic",
            "digest": "cd" * 32,
            "note": "",
        },
        "bytes_up": 2_000_000 if row == "global-dlad" else 0,
        "finished": "2026-01-02T03:04:05Z",
        "seconds": 1.5,
        "machine": {
            "commit": "f" * 40,
            "hardware": "a processor",
            "device": "cpu",
            "threads": 1,
            "packages": {"torch": "2"},
        },
    }
    return made_record(**{**known, **changes})


def write_results(
    folder: Path, records: list[Record] | None = None, variant: str = ""
) -> TableFiles:
    """DLAD's Table II of two columns under `folder`/smoke."""
    files = TableFiles(folder, "smoke", "dlad/table2", variant)
    found = records or [
        record(row, c, v)
        for row, values in VALUES.items()
        for c, v in zip(COLUMNS, values, strict=True)
    ]
    write_csv(files.path("csv"), summarise(found))
    files.write_records(found)
    claim = {
        "id": "dlad-t2-a",
        "claim": "DLAD & averaging differ",
        "verdict": "holds",
        "in_print": "yes 3/3",
    }
    write_csv(files.path("claims.csv"), [claim], list(claim))
    files.path("png").write_bytes(PIXEL)
    files.path("md").write_text("# dlad/table2\n")
    layout = Layout(
        "dlad/table2",
        "Table II",
        "Accuracy",
        ROWS,
        frozenset(),
        "global-dlad",
        "",
        COLUMNS,
        ("profile smoke (reduced)", "1 seed"),
    )
    card = ("Profile smoke.", "", "| setting | paper |", "|---|---|", "| local.epochs | **50** |")
    Sheet(layout, "DLAD: a title", "A. Author. ICPR 2020", "final", ("a remark",), card).write(
        files.path("layout.json")
    )
    return files
