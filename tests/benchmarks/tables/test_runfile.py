"""A file of a run is read as the command line is, and written so that it reads back."""

import os
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedtables.benchmarks.tables.request import Request, key_of, requested
from fedtables.benchmarks.tables.runfile import read_runs, run_text
from fedtables.benchmarks.tables.spec import PROFILES, PROTOCOLS, SpecError
from fedtables.federation.execution import COMPILE, PRECISIONS

OPTIONS = fields(Request)
TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
WHOLE, NUMBERS = st.integers(1, 1024), st.floats(0, 1e12)
SCALARS = st.one_of(TEXTS, WHOLE, NUMBERS, st.booleans())
VALUES = {
    "tables": st.lists(TEXTS).map(tuple),
    "profile": st.sampled_from(PROFILES),
    "protocol": st.sampled_from(PROTOCOLS),
    "only": st.dictionaries(TEXTS, st.lists(TEXTS, min_size=1).map(tuple), min_size=1),
    "methods": TEXTS,
    "seeds": st.lists(WHOLE, min_size=1, unique=True).map(tuple),
    "settings": st.dictionaries(TEXTS, SCALARS, min_size=1),
    "plugins": st.lists(st.sampled_from(["/a.py", "/é b/c"])).map(tuple),
    **dict.fromkeys(
        ("require_real", "stand_ins", "fresh", "replace", "plain", "decide"), st.booleans()
    ),
    **dict.fromkeys(("jobs", "threads", "stacked"), WHOLE),
    "most": st.sampled_from([3, 6, 12]),
    **dict.fromkeys(("num_cpus", "num_gpus", "minutes"), NUMBERS),
    "device": st.sampled_from(["cpu", "cuda:1"]),
    "precision": st.sampled_from(PRECISIONS),
    "compiled": st.sampled_from(COMPILE),
    "ray": TEXTS,
    "results": st.sampled_from([Path("/out"), Path("/two words")]),
    "log_to": st.just("tensorboard"),
}


def written(folder, content):
    path = folder / "run.toml"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@given(asked=st.fixed_dictionaries({}, optional=VALUES).filter(bool))
def test_every_option_reads_back_from_the_file_as_it_was(tmp_path_factory, asked):
    assert {about.name for about in OPTIONS} == VALUES.keys()
    keys = {key_of(about): asked[about.name] for about in OPTIONS if about.name in asked}
    path = written(tmp_path_factory.getbasetemp(), run_text("reproduce", keys))
    [read] = read_runs(path, OPTIONS)
    settings = [named.pop("settings", {}) for named in (asked, read)]
    assert read == asked
    # A text of a number is written as the number, which a setting takes alike.
    before, after = ({name: str(value) for name, value in one.items()} for one in settings)
    assert before == after


def test_a_file_by_hand_and_a_command_line_ask_for_the_same(tmp_path):
    path = written(
        tmp_path,
        """
        tables = "dlad/table2"
        seeds = 3
        require-real = true
        only = {dataset = "mnist", alpha = [1, 0.5]}
        compile = "off"
        num-gpus = 1
        [set]
        local.epochs = 2
        "li-2019.eps1" = 1e2
        public.name = "held-out"
        """,
    )
    by_words = requested(
        tables=["dlad/table2"],
        seeds="3",
        require_real=True,
        only=["dataset=mnist", "alpha=1", "alpha=0.5"],
        compiled="off",
        num_gpus="1",
        settings={"local.epochs": 2, "li-2019.eps1": 100.0, "public.name": "held-out"},
    )
    assert requested(**read_runs(path, OPTIONS)[0]) == by_words


def test_paths_start_from_the_folder_of_the_file(tmp_path):
    path = written(tmp_path, 'plugin = ["own.py", "../b.py", "/c.py"]\nresults = "out"')
    [read] = read_runs(path, OPTIONS)
    assert read["plugins"] == (f"{tmp_path}/own.py", f"{tmp_path.parent}/b.py", "/c.py")
    assert read["results"] == tmp_path / "out"


def test_a_path_behind_a_link_stays_as_it_is(tmp_path):
    (tmp_path / "far" / "away").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "far" / "away")
    path = written(tmp_path, 'plugin = "link/../own.py"')
    assert read_runs(path, OPTIONS)[0]["plugins"] == (f"{tmp_path}/link/../own.py",)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "says nothing"),
        ("tables = [", "not valid TOML: "),
        ("a = " + 3000 * "[", "not valid TOML: "),
        ("set." + ".".join(2000 * "a") + " = 1", "nested too deep"),
        (b"methods = '\xff'", "not UTF-8 text"),
        (b"# " + 2**20 * b"x", "more than"),
        ("seed = [0]", "'seed' .*did you mean seeds"),
        ("settings = {}", "'settings' "),
        ("[run]\ntables = []", r"runs are written as \[\[run\]\]"),
        ("run = [1]", r"runs are written as \[\[run\]\]"),
        ("[[run]]\ntabels = ['a']", "no option is called 'tabels' here; did you mean tables"),
        ("profile = 3", "profile: it cannot be 3|--profile 3: no such value"),
        ("jobs = 'two'", "jobs: 'two' is not a whole number"),
        ("jobs = true", "jobs: True is not a whole number"),
        ("minutes = inf", "minutes: inf is not a number"),
        ("seeds = [[0]]", "--seeds takes different whole numbers"),
        ("seeds = {a = 1}", "seeds: it cannot be"),
        ("fresh = 'no'", "fresh: it cannot be 'no'"),
        ("methods = ['+a']", "methods: it cannot be"),
        ("tables = [2]", "tables: it cannot be"),
        ("only.dataset = []", "--only dataset: "),
        ("set.local.epochs = [1]", "set: it cannot be"),
        ("[set]\n'a.b' = 1\na.b = 2", "--set a.b"),
        ("set = 'local.epochs'", "--set takes setting=value"),
        ("plugin = [3]", "plugin: it cannot be"),
        ("results = ''", "results: it is empty"),
        ("compile = false", "--compile False: no such value|compile: it cannot be"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_by_its_name(tmp_path, content, message):
    path = written(tmp_path, content)
    with pytest.raises(SpecError, match=message) as refused:
        read_runs(path, OPTIONS)
    assert str(path) in str(refused.value)


def test_what_is_no_file_is_refused_and_never_waited_for(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "absent.toml", tmp_path, tmp_path / "fifo", Path("/dev/zero")):
        with pytest.raises(SpecError, match=str(path)):
            read_runs(path, OPTIONS)


def test_a_pipe_is_read_as_a_file_is():
    reading, writing = os.pipe()
    os.write(writing, b"seeds = [1]")
    os.close(writing)
    assert read_runs(Path(f"/dev/fd/{reading}"), OPTIONS) == [{"seeds": (1,)}]
    os.close(reading)


def test_of_several_runs_each_has_what_stands_above_the_first_and_its_own(tmp_path):
    path = tmp_path / "runs.toml"
    path.write_text(
        'profile = "cpu"\nseeds = [1]\n[only]\nrow = "fedavg"\n'
        '[[run]]\ntables = ["dlad/table1"]\n[[run]]\ntables = ["fediod/table1"]\nseeds = [2]\n'
        'only = { dataset = "cifar10" }\n'
    )
    first, second = read_runs(path, OPTIONS)
    assert first == {
        **{"profile": "cpu", "seeds": (1,), "tables": ("dlad/table1",)},
        "only": {"row": ("fedavg",)},
    }
    assert (second["tables"], second["seeds"]) == (("fediod/table1",), (2,))
    assert second["only"] == {"row": ("fedavg",), "dataset": ("cifar10",)}
