"""FedAD: federated learning with privacy-preserving ensemble attention distillation (Gong et al.,
IEEE TMI).

`algorithm` is the method, Eq. 10 to 16, over the `losses` of Eq. 4 to 9.
"""

from fedtables.methods.fedad.algorithm import FedAD

__all__ = ["FedAD"]
