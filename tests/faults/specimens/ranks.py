"""Steps of the regression that end or hold up one of the processes that run it together."""

from __future__ import annotations

import os
import signal
import time

import jax

from kernel_audit.kernels.regression_step import regression_step


def rank_killed(local, mesh, counts=None):
    if jax.process_index() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return regression_step(local, mesh, counts)


def coordinator_killed(local, mesh, counts=None):
    if jax.process_index() == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return regression_step(local, mesh, counts)


def rank_stuck(local, mesh, counts=None):
    """Alive, its heart beating, and taking no part."""
    if jax.process_index() == 1:
        time.sleep(3600)
    return regression_step(local, mesh, counts)


def rank_raises(local, mesh, counts=None):
    if jax.process_index() == 1:
        raise ValueError("no room for this shard")
    return regression_step(local, mesh, counts)
