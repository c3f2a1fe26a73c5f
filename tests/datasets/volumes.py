"""NIfTI files of any content."""

import nibabel
import numpy as np


def write_volume(path, volume, affine=None):
    """A volume (z, y, x) as NIfTI, x to the right, y to the front and z up unless the affine says
    otherwise.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.save(nibabel.Nifti1Image(volume.T, np.eye(4) if affine is None else affine), path)
    return path
