"""The solution: the package's own kernels under the names that the course asks for. Keep yours in my_model.py."""

from kernel_audit.kernels.blocked_axpy import blocked_axpy
from kernel_audit.kernels.fused_bias_relu import fused_bias_relu
from kernel_audit.kernels.pipelined_axpy import pipelined_axpy
from kernel_audit.target.benchmark import target_benchmark

__all__ = ["blocked_axpy", "fused_bias_relu", "pipelined_axpy", "target_benchmark"]
