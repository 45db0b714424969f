"""A stub in the place of a TPU: JAX is told that its CPU is one. What runs on it is no receipt and times nothing real."""

from __future__ import annotations

import jax
import pytest

from kernel_audit.target import attempt, devices


def claim(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    """JAX's backend, and the platform of every device, say `target`."""
    monkeypatch.setattr(jax, "default_backend", lambda: target)
    for module in (devices, attempt):
        monkeypatch.setattr(module, "platform_of", lambda device: target)


@pytest.fixture
def stub_tpu(monkeypatch: pytest.MonkeyPatch) -> None:
    claim(monkeypatch, "tpu")


@pytest.fixture
def stub_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    claim(monkeypatch, "gpu")
