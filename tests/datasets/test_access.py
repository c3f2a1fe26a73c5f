"""While a method fits, data sets are closed."""

import pytest

from fedtables.datasets import catalogue
from fedtables.datasets.access import AccessError, is_fitting, refuse, while_fitting


def test_a_data_set_that_is_in_memory_is_closed_too():
    assert len(catalogue.load("digits")["test"]) > 0
    with while_fitting(), pytest.raises(AccessError, match="digits is closed while a method fits"):
        catalogue.load("digits")
    assert len(catalogue.load("digits")["test"]) > 0


def test_fits_within_fits_end_with_the_outermost():
    with while_fitting():
        with while_fitting():
            pass
        assert is_fitting()
        with pytest.raises(AccessError, match="nothing here"):
            refuse("nothing here")
    assert not is_fitting()
    refuse("nothing here")
