"""Described devices: each number that a floor or a limit rests on names its source."""

from __future__ import annotations

import pytest

from kernel_audit.errors import TargetError
from kernel_audit.records import device_of, known_devices

DEVICES = known_devices()


@pytest.mark.parametrize("name", DEVICES)
def test_every_figure_has_a_source(name: str):
    device = DEVICES[name]
    figures = {"hbm_bytes_per_s", "peak_flops", "clock_hz" if device.clock_hz else "hbm_bytes_per_s"}
    figures.add("vmem_bytes" if device.kind == "tpu" else "shared_bytes")
    assert figures <= set(device.sources)
    assert all(len(each) > 10 for each in device.sources.values())


@pytest.mark.parametrize("name", DEVICES)
def test_a_device_is_named_for_its_target(name: str):
    device = DEVICES[name]
    assert name == device.name and name.startswith(f"{device.kind}:")
    assert device.fast_bytes > 0 and device.hbm_bytes_per_s > 1e11 and device.topologies
    assert (device.tile == [8, 128]) == (device.kind == "tpu")


def test_the_figures_of_the_lessons():
    assert (device_of("tpu:v5e").hbm_bytes_per_s, device_of("tpu:v6e").hbm_bytes_per_s) == (819e9, 1638e9)
    assert (device_of("tpu:v5e").clock_hz, device_of("tpu:v6e").clock_hz) == (1.5e9, 1.75e9)


def test_an_unknown_target_offers_near_names():
    with pytest.raises(TargetError, match="did you mean 'tpu:v5e'") as raised:
        device_of("tpu:v5ee")
    assert "gpu:h200" in str(raised.value.expected)
