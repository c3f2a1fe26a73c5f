"""FedIOD: federated learning via input-output collaborative distillation (Gong et al., AAAI 2024).

`algorithm` is Algorithm 1, over the `losses` of Eq. 2 to 10; `settings` holds its hyper-parameters,
`parties` what server and clients have, `private` its form under differential privacy, `released`
what the authors' code does where it departs.
"""

from methods.fediod.algorithm import FedIOD

__all__ = ["FedIOD"]
