"""FedIOD: federated learning via input-output collaborative distillation (Gong et al., AAAI 2024).

`algorithm` is Algorithm 1, also under differential privacy, over the `losses` of Eq. 2 to 11;
`parties` is what server and clients have, and its hyper-parameters.
"""

from fedtables.methods.fediod.algorithm import FedIOD

__all__ = ["FedIOD"]
