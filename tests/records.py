"""Records of toy cells, for tests."""

from fedtables.results.record import Record


def made_record(**changes: object) -> Record:
    """A record of a toy table; `changes` are to its fields."""
    words = {"table": "p/t", "row": "a", "column": "", "profile": "smoke", "protocol": "paper"}
    known = {**words, "seed": 0, "seeds": {}, "cell": "c", "code": "d"}
    return Record(**{**known, **changes})  # type: ignore[arg-type]
