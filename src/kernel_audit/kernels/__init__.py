"""The built-in kernels and what they are compared with.

Nothing is imported here, so that naming a kernel does not load JAX and the oracle can be had without any
kernel.
"""

__all__ = [
    "axpy_block",
    "axpy_references",
    "bias_relu_references",
    "blocked_axpy",
    "fused_bias_relu",
    "pipelined_axpy",
    "preconditions",
    "refusals",
    "regression_gradient",
    "regression_host",
    "regression_references",
    "regression_step",
    "regression_tpu",
    "regression_triton",
    "triton_axpy",
    "triton_bias_relu",
    "triton_block",
]
