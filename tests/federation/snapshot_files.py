"""Which rounds' snapshots are on disk, and in which files."""

from federation.cache import read_stage


def rounds_on_disk(folder):
    """The round of every whole snapshot."""
    stages = [read_stage(path.with_suffix(""))[0] for path in folder.rglob("*running-?.json")]
    return sorted(stage.info["round"] for stage in stages if stage is not None)


def newest(folder, suffix):
    """The file of the snapshot with the highest round."""
    headers = folder.rglob("*running-?.json")
    return max(
        headers, key=lambda path: read_stage(path.with_suffix(""))[0].info["round"]
    ).with_suffix(f".{suffix}")
