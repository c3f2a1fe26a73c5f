"""Result sets beside each other: the regression report."""
