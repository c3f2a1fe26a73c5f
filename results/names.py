"""Names that do not exist: what may have been meant, and settings that have none but known ones;
and texts of others, without what is no character.
"""

import difflib
import re
from collections.abc import Collection, Iterable

_SPACES = re.compile("[\t\n\v\f\r\x85\u2028\u2029]+")
_CONTROLS = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
"""What moves a cursor, colours a terminal, turns the direction of writing, or is no character."""


def printable(text: str) -> str:
    """Text of somebody else as one line without control characters, wherever it is shown."""
    return _CONTROLS.sub("", _SPACES.sub(" ", text))


def near(name: str, known: Iterable[str]) -> str:
    """`did you mean a or b?`, or all known names when none is near."""
    names = sorted(known)
    begun = [known_name for known_name in names if name and known_name.startswith(name)]
    close = list(dict.fromkeys([*begun, *difflib.get_close_matches(name, names, n=3, cutoff=0.5)]))[
        :3
    ]
    return f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(names)}"


def check_known(settings: object, **known: Collection[str]) -> None:
    """Raise ValueError, with what is known, for a field of `settings` that has another value."""
    for field, values in known.items():
        value = getattr(settings, field)
        if value not in values:
            raise ValueError(f"unknown {field} {value!r}; known: {', '.join(values)}")
