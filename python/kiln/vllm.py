"""Kiln as a provider of vLLM's IR operators, and in place of its custom operators. Needs vLLM; docs/torch.md says which source was read.

    import kiln.vllm
    kiln.vllm.register()                 # in a plugin of vllm.general_plugins
    # then put "kiln" in front of the providers of an operator in vLLM's configuration

Nothing of it has run under vLLM.
"""

import torch
from torch import Tensor

from . import torch as kiln_torch
from .decorator import kernel
from .errors import MachineError
from .functions import FUNCTIONS
from .trace import cast

PROVIDER = "kiln"
_TYPES = (torch.float16, torch.bfloat16)
_row_mean, _rsqrt, _silu = FUNCTIONS["row_mean"], FUNCTIONS["rsqrt"], FUNCTIONS["silu"]


def _normed(h, weight, epsilon, dtype):
    """vLLM rounds to the weight's type before it multiplies."""
    return cast(dtype, cast(weight.dtype, h * _rsqrt(_row_mean(h * h) + epsilon)) * weight)


@kernel
def rms_norm_kernel(x, weight, *, epsilon):
    return _normed(x, weight, epsilon, x.dtype)


@kernel
def fused_add_rms_norm_kernel(x, x_residual, weight, *, epsilon):
    h = x + x_residual
    return _normed(h, weight, epsilon, x.dtype), cast(x.dtype, h)


@kernel
def silu_and_mul_kernel(gate, up):
    return cast(gate.dtype, cast(gate.dtype, _silu(gate)) * up)


def _rows(x):
    return x.view(-1, x.shape[-1])


def _takes(x, *others):
    return x.dtype in _TYPES and x.ndim >= 2 and x.is_contiguous() and all(other.is_contiguous() and other.dtype == x.dtype for other in others)


def _supports_norm(x, weight, epsilon, variance_size=None):
    return variance_size is None and weight is not None and _takes(x, weight)


def _supports_add_norm(x, x_residual, weight, epsilon, variance_size=None):
    return variance_size is None and weight is not None and _takes(x, x_residual, weight)


def _supports_silu(x):
    return _takes(x)


def rms_norm(x: Tensor, weight: Tensor | None, epsilon: float, variance_size: int | None = None) -> Tensor:
    return rms_norm_kernel(_rows(x), weight, epsilon=epsilon).view(x.shape)


def fused_add_rms_norm(
    x: Tensor, x_residual: Tensor, weight: Tensor | None, epsilon: float, variance_size: int | None = None
) -> tuple[Tensor, Tensor]:
    y, residual = fused_add_rms_norm_kernel(_rows(x), _rows(x_residual), weight, epsilon=epsilon)
    return y.view(x.shape), residual.view(x.shape)


def silu_and_mul(x: Tensor) -> Tensor:
    gate, up = _rows(x).chunk(2, -1)  # rows with a stride, as they are
    return silu_and_mul_kernel(gate, up).view(*x.shape[:-1], x.shape[-1] // 2)


# vLLM's name of an operator: the implementation, and whether it takes arguments.
PROVIDERS = {
    "rms_norm": (rms_norm, _supports_norm),
    "fused_add_rms_norm": (fused_add_rms_norm, _supports_add_norm),
    "silu_and_mul": (silu_and_mul, _supports_silu),
}


def register(custom_ops=False):
    """Registers "kiln" as a provider of the IR operators that this vLLM has, and returns their names. With `custom_ops` also replaces the
    custom operator SiluAndMul, for versions whose models call that. Raises MachineError without vLLM."""
    try:
        from vllm import ir
        from vllm.platforms import current_platform
    except ImportError as error:
        raise MachineError(f"vLLM: it cannot be imported ({error}); install a version with vllm.ir, or do not register with it") from None
    supported, registered = bool(current_platform.is_rocm()), []
    for name, (implementation, supports) in PROVIDERS.items():
        operator = getattr(ir.ops, name, None)
        if operator is not None:
            operator.register_impl(PROVIDER, supported=supported, supports_args=supports)(implementation)
            registered.append(name)
    if custom_ops and supported:
        _replace_silu_and_mul()
        registered.append("SiluAndMul")
    return registered


def _replace_silu_and_mul():
    from vllm.model_executor.custom_op import CustomOp
    from vllm.model_executor.layers.activation import SiluAndMul

    @CustomOp.register_oot(name="SiluAndMul")
    class KilnSiluAndMul(SiluAndMul):
        def forward_cuda(self, x):
            return silu_and_mul(x) if _supports_silu(x) else super().forward_cuda(x)

        forward_hip = forward_cuda


def warm_up(manifest, device="cuda"):
    """Gets the kernels of a manifest before vLLM serves, as kiln.torch.warm_up; returns their keys."""
    return kiln_torch.warm_up(manifest, device)


__all__ = ["PROVIDERS", "register", "warm_up"]
