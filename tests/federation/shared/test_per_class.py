"""Tables by class and means over holders, by hand."""

import pytest
import torch

from fedtables.federation.shared.per_class import (
    ClassTable,
    OwnNetworks,
    mean_over_holders,
    shares_of_holders,
)
from tests.federation.tiny import make_dense_federation, make_federation


def test_a_table_adds_values_to_the_rows_of_their_labels():
    table = ClassTable(3, 2)
    table.add(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([2, 0]))
    table.add(torch.tensor([[5.0, 0.0], [7.0, 1.0]]), torch.tensor([2, 2]))
    assert table.rows.tolist() == [[3, 4], [0, 0], [13, 3]]
    assert table.counts.tolist() == [1, 0, 3]
    torch.testing.assert_close(table.means(), torch.tensor([[3.0, 4.0], [0.0, 0.0], [13 / 3, 1.0]]))


def test_a_table_takes_no_gradient_along():
    table = ClassTable(2, 1)
    table.add(torch.ones(3, 1, requires_grad=True), torch.tensor([0, 1, 1]))
    assert not table.rows.requires_grad


COUNTS = torch.tensor([[3, 0, 2], [1, 0, 0]])


def test_shares_are_of_the_samples_of_each_class():
    assert shares_of_holders(COUNTS).tolist() == [[0.75, 0, 1], [0.25, 0, 0]]


def test_counts_as_weights_give_the_mean_over_all_samples():
    values = [torch.tensor([[1.0], [2.0], [6.0]]), torch.tensor([[11.0]])]
    rows = torch.zeros(2, 3, 1)
    rows[0, 0], rows[1, 0] = values[0].mean(), values[1].mean()
    rows[0, 2], rows[1, 2] = 4.0, 99.0  # the second client holds none of class 2
    mean = mean_over_holders(rows, COUNTS)
    assert mean.tolist() == [[torch.cat(values).mean()], [0], [4]]


def test_holders_that_count_alike_give_the_plain_mean():
    rows = torch.tensor([[[3.0], [1.0], [5.0]], [[11.0], [1.0], [7.0]]])
    assert mean_over_holders(rows, COUNTS > 0).tolist() == [[7], [0], [5]]


def test_a_task_without_one_label_per_image_is_refused():
    assert OwnNetworks(make_federation()).classes == 3
    with pytest.raises(ValueError, match="one class per image"):
        OwnNetworks(make_dense_federation())
