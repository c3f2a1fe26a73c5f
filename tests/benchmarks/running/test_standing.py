"""What of a cache the present code has a use for: stages here, cells by `fedtables cache`."""

from fedtables.benchmarks.running.standing import of_entry
from fedtables.federation.cache import StageCache
from fedtables.results.cached import STALE, UNTOLD, USED, entries
from fedtables.results.files import read_sealed_json, write_sealed_json
from tests.federation.stages import request


def of_only_entry(home):
    [entry] = entries(home)
    return of_entry(home, entry)


def test_a_stage_is_stale_when_its_code_is_another_gone_or_damaged(tmp_path):
    StageCache(tmp_path / "stages").get(request())
    [entry] = entries(tmp_path)
    header, body = entry.files
    assert of_only_entry(tmp_path) == USED
    value = read_sealed_json(header)
    for change, told in (
        ({"code": "another"}, STALE),
        ({"module": "fedtables.results.nosuch"}, STALE),
        ({"module": "own_method"}, UNTOLD),
        ({"module": ""}, UNTOLD),  # of a version that did not note it
    ):
        write_sealed_json(header, {**value, **change})
        assert of_only_entry(tmp_path) == told
    header.write_text("{}")
    assert of_only_entry(tmp_path) == STALE
    write_sealed_json(header, value)
    body.unlink()
    assert of_only_entry(tmp_path) == STALE


def test_of_other_kinds_nobody_can_tell(tmp_path):
    write_sealed_json(tmp_path / "plans" / "aa" / f"{'a' * 64}.json", {})
    assert of_only_entry(tmp_path) == UNTOLD
