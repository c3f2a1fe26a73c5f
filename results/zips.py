"""Members of zip archives, of which nothing is believed before it is checked."""

import zipfile

MOST_PACKED = 1100
"""How many times larger than packed something may be: deflate cannot do more."""
PACKINGS = {zipfile.ZIP_STORED: 1, zipfile.ZIP_DEFLATED: MOST_PACKED}
"""The two that NumPy and this suite write, and how many times larger a member may be."""
MEGABYTES = 64
"""Most that a pack holds, and unpacks to, if nobody says otherwise."""
ENCRYPTED = 0x1
"""Of a member's flags."""


def check_member(member: zipfile.ZipInfo) -> None:
    """Raise ValueError for a member that cannot be read, or is larger than it can be."""
    name = member.filename
    if member.flag_bits & ENCRYPTED:
        raise ValueError(f"{name} is encrypted")
    if member.compress_type not in PACKINGS:
        raise ValueError(
            f"{name} is packed by method {member.compress_type}, neither stored nor deflated"
        )
    if member.file_size > PACKINGS[member.compress_type] * max(member.compress_size, 1):
        raise ValueError(f"{name} says that it is {member.file_size:,} bytes, which is impossible")
