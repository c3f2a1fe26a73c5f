"""What tox.ini cannot say by itself; tox reads this file beside it."""

import sys

from tox.config.sets import EnvConfigSet
from tox.plugin import impl
from tox.session.state import State


@impl
def tox_add_env_config(env_conf: EnvConfigSet, state: State) -> None:
    """`{tox_python}`: the interpreter that runs tox, which need not be on the PATH."""
    env_conf.add_constant("tox_python", "the interpreter that runs tox", sys.executable)
