"""The record of a cell, as if it had been computed."""

from __future__ import annotations

from dataclasses import asdict

from benchmarks.tables.cells import Cell
from results.record import Record


def record_of(cell: Cell, **more) -> Record:
    """What is known of a cell before it runs, with `more` of what it left."""
    return Record(
        table=cell.table,
        row=cell.row,
        column=cell.column,
        seed=cell.seed,
        seeds={},
        profile=cell.profile,
        cell=cell.key,
        code=cell.code,
        protocol=cell.protocol,
        config=dict(cell.config),
        data=asdict(cell.data),
        **more,
    )
