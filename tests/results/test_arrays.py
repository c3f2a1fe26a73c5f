"""Arrays in a record are text there, and the same arrays when they are read."""

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from fedtables.results.arrays import pack, unpack

ARRAYS = st.dictionaries(
    st.sampled_from(["images", "target", "fedavg+"]),
    arrays_of.arrays(
        st.sampled_from([np.uint8, np.float32]), arrays_of.array_shapes(max_dims=4, max_side=3)
    ),
)


@given(ARRAYS)
def test_what_was_packed_is_unpacked(arrays):
    text = json.loads(json.dumps(pack(arrays)))
    assert text.isascii()
    found = unpack(text)
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_arrays_in_another_order_of_memory_are_packed_as_they_read():
    turned = np.arange(6, dtype=np.uint8).reshape(2, 3).T
    np.testing.assert_array_equal(unpack(pack({"turned": turned}))["turned"], turned)
