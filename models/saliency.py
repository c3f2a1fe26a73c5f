"""Saliency maps: which parts of an image a representation, or a decision, depends on."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from fedtables.models.cut import bottom_of, decode, encode, evaluating, when_passed
from fedtables.models.entry import ModelError

PART = 100
"""Images whose maps are taken at a time without a graph; bounds memory."""


def input_gradient(model: nn.Module, inputs: torch.Tensor) -> torch.Tensor:
    """|d r / d x| of the encoder's map r for normalised inputs x, both (n, c, h, w): FedSA's Eq. 1
    (Xie et al. 2022), the gradient of the sum of the map's entries, and of it the magnitude
    (Simonyan et al. 2014).
    """
    inputs = inputs.detach().requires_grad_()
    with evaluating(model):
        (gradient,) = torch.autograd.grad(encode(model, inputs).sum(), inputs)
    return gradient.abs()


def grad_cam(model: nn.Module, inputs: torch.Tensor) -> torch.Tensor:
    """Grad-CAM of the class with the highest score, at the encoder's map, for normalised inputs;
    (n, h, w) in [0, 1]. Selvaraju et al. 2017, Eq. 1 and 2: the map's channels weighted by the mean
    gradient of the score, rectified; then scaled to [0, 1] image by image, and to the inputs' size.
    Where outputs are maps (n, classes, h, w) a class's score is its mean over the pixels.
    """
    with evaluating(model):
        with torch.no_grad():
            features = encode(model, inputs)
        features = features.detach().requires_grad_()
        outputs = decode(model, features)
        scores = outputs if outputs.ndim == 2 else outputs.flatten(2).mean(dim=2)
        (gradient,) = torch.autograd.grad(scores.max(dim=1).values.sum(), features)
    weighted = gradient.mean(dim=(2, 3), keepdim=True) * features
    cam = weighted.sum(dim=1, keepdim=True).relu().detach()
    scaled = unit_scaled(cam.flatten(1)).view_as(cam)
    return F.interpolate(scaled, size=inputs.shape[-2:], mode="bilinear")[:, 0]


def class_attention(
    model: nn.Module, features: torch.Tensor, *, create_graph: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """The decoder's outputs (n, C) for a map (n, c, h, w), and every class's attention (n, C, h,
    w), each at most 1. FedAD's Eq. 10 and 11 (Grad-CAM): channels weighted by the mean gradient of
    the class's score, rectified, divided by the map's own maximum. The maps' gradient flows through
    the features, and with `create_graph` through the channels' weights. Where gradients are off
    there is none. Raises ValueError for outputs that are not scores of whole images.
    """
    if features.is_meta:  # a plan: shapes alone, and the last layers' gradients hardly count
        outputs = decode(model, features)
        return outputs, features.new_empty(*outputs.shape, *features.shape[2:])
    keep = torch.is_grad_enabled()
    # Never in bf16: rounding would leave little of a difference of evidence for and against.
    with (
        torch.inference_mode(False),
        torch.enable_grad(),
        torch.autocast(features.device.type, enabled=False),
    ):
        features = features.float() if features.dtype == torch.bfloat16 else features
        if features.is_inference():  # one made in inference mode cannot be differentiated through
            features = features.clone()
        if not features.requires_grad:
            features = features.detach().requires_grad_()
        outputs = decode(model, features)
        if outputs.ndim != 2:
            raise ValueError(
                "Grad-CAM is of scores (n, classes); where every pixel has scores, they are"
                " attention themselves"
            )
        one_hot = torch.eye(outputs.shape[1], dtype=outputs.dtype, device=outputs.device)
        (gradient,) = torch.autograd.grad(
            outputs,
            features,
            one_hot[:, None].expand(-1, len(outputs), -1),
            is_grads_batched=True,
            create_graph=create_graph,
            retain_graph=True,
        )
        weights = gradient.mean(dim=(3, 4)).transpose(0, 1)
        maps = peak_scaled(torch.einsum("ncj,njhw->nchw", weights, features).relu())
    return (outputs, maps) if keep else (outputs.detach(), maps.detach())


def peak_scaled(maps: torch.Tensor) -> torch.Tensor:
    """Maps (..., h, w) of at least 0 by their greatest value; one of zeros stays."""
    peak = maps.amax(dim=(-2, -1), keepdim=True)
    return maps / torch.where(peak > torch.finfo(maps.dtype).tiny, peak, 1.0)


class Attentive(nn.Module):
    """`model` with its attention beside its outputs, as `side_by_side` puts them: (n, C + C * h *
    w); in evaluation mode only if `always`, and else outputs alone. `second_order` is the
    `create_graph` of `class_attention`; with `eager` the attention is left out of what is compiled.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        always: bool = False,
        second_order: bool = False,
        eager: bool = False,
    ):
        super().__init__()
        self.model = model
        self.always = always
        self.second_order = second_order
        # Of a compiled decoder no batch of gradients can be taken. The call imports dynamo.
        self.attend = torch.compiler.disable(class_attention) if eager else class_attention
        self.train(model.training)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        if not (self.training or self.always):
            outputs: torch.Tensor = self.model(images)
            return outputs
        features = encode(self.model, images)
        if self.training:
            return side_by_side(*self.attend(self.model, features, create_graph=self.second_order))
        parts = [self.attend(self.model, part, create_graph=False) for part in features.split(PART)]
        return torch.cat([side_by_side(*part) for part in parts])


class NonLocalAttentive(nn.Module):
    """`model` with the attention (n, p, p) of its non-local block (FedAD, Eq. 14) beside its
    outputs (n, k, h, w): images to (n, k * h * w + p * p); in evaluation mode as `Attentive`.
    Raises ModelError for a network without such a block.
    """

    def __init__(self, model: nn.Module, *, always: bool = False):
        super().__init__()
        self.model = model
        self.always = always
        if not hasattr(bottom_of(model), "attention"):
            raise ModelError(
                f"a {type(model).__name__} has no non-local block, whose attention this method"
                " needs; use a network with one, such as unet-32-in-nonlocal"
            )
        self.train(model.training)

    @torch.compiler.disable  # a hook that comes and goes would be compiled anew in every pass
    def forward(self, images: torch.Tensor) -> torch.Tensor:
        seen: list[torch.Tensor] = []
        handle = when_passed(self.model, seen.append)
        try:
            outputs: torch.Tensor = self.model(images)
        finally:
            handle.remove()
        if not (self.training or self.always):
            return outputs
        attention = bottom_of(self.model).attention(seen[0])  # type: ignore[operator]
        return side_by_side(outputs.flatten(1), attention)


def side_by_side(outputs: torch.Tensor, maps: torch.Tensor) -> torch.Tensor:
    """Outputs (n, C) and maps (n, C, h, w) as one tensor (n, C + C * h * w), for loops."""
    return torch.cat([outputs, maps.flatten(1)], dim=1)


def apart(
    both: torch.Tensor, classes: int, side: tuple[int, int]
) -> tuple[torch.Tensor, torch.Tensor]:
    """The inverse of `side_by_side`, for maps of that height and width."""
    return both[:, :classes], both[:, classes:].unflatten(1, (classes, *side))


def images_apart(both: torch.Tensor, shape: tuple[int, ...]) -> tuple[torch.Tensor, torch.Tensor]:
    """Outputs (n, *shape) and attention (n, 1, p, p) of what `NonLocalAttentive` gives."""
    length = math.prod(shape)
    places = math.isqrt(both.shape[1] - length)
    return both[:, :length].unflatten(1, shape), both[:, length:].unflatten(1, (1, places, places))


def unit_scaled(values: torch.Tensor) -> torch.Tensor:
    """Rows (n, m) scaled to [0, 1] by their extremes; rows of equal values become 0."""
    least, most = values.amin(dim=-1, keepdim=True), values.amax(dim=-1, keepdim=True)
    return (values - least) / (most - least).clamp_min(torch.finfo(values.dtype).tiny)
