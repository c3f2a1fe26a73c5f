"""What a process says of its machine."""

from pathlib import Path

from benchmarks.running.machine import peak_memory_mb


def test_peak_memory_leaves_out_the_pages_of_library_files(tmp_path: Path) -> None:
    status = tmp_path / "status"
    status.write_text("Name:\tpython\nVmHWM:\t  3072 kB\nRssFile:\t  1024 kB\nThreads:\t2\n")
    assert peak_memory_mb(status) == 2
