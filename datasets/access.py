"""Who may read data: while a method fits, nobody but the code that was given them."""

import contextlib
from collections.abc import Iterator


class AccessError(Exception):
    """A method reached, while it fitted, for data that it has no way to."""


_fits = 0  # of the process, for a thread that a method starts has another context


@contextlib.contextmanager
def while_fitting() -> Iterator[None]:
    """A method fits inside."""
    global _fits
    _fits += 1
    try:
        yield
    finally:
        _fits -= 1


def is_fitting() -> bool:
    """Whether a method fits now."""
    return _fits > 0


def refuse(what: str) -> None:
    """Raise AccessError, with what is refused and why, while a method fits."""
    if is_fitting():
        raise AccessError(what)
