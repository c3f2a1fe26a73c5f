"""Pictures of results, with Matplotlib.

Pictures are drawn on Agg, whichever backend the environment asks for: a notebook names one that
need not be installed here. It is for `pyplot`, which nothing here uses.
"""

import contextlib
import os

from fedtables.results.files import ResultsError

_ASKED = os.environ.pop("MPLBACKEND", None)
try:
    import matplotlib
except UnicodeDecodeError as error:
    raise ResultsError(
        f"Matplotlib cannot read its settings, the file matplotlibrc: {error}; mend or remove it"
    ) from error
finally:
    if _ASKED is not None:
        os.environ["MPLBACKEND"] = _ASKED
if _ASKED:
    with contextlib.suppress(ValueError):  # one that is not installed; `pyplot` will say so
        matplotlib.rcParams["backend"] = _ASKED
