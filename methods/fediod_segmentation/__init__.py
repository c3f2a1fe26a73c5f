"""FedIOD's segmentation (Gong et al., AAAI 2024; Tables 2, 3, 4 and 8): the generator makes images
of the clients' label maps.

`algorithm` is Algorithm 1 with a class for every pixel, over the losses of `methods.fediod`;
`settings` holds its hyper-parameters and what the authors' code sets.
"""

from methods.fediod_segmentation.algorithm import FedIODSegmentation

__all__ = ["FedIODSegmentation"]
