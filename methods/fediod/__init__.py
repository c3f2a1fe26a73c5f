"""FedIOD: federated learning via input-output collaborative distillation (Gong et al., AAAI 2024).

from methods.fediod.algorithm import FedIOD

__all__ = ["FedIOD"]
