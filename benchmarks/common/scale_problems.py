"""Functions of numbers whose scale is declared linear: the effects of most depend on ratios, those of some do not."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from ConfigSpace import Categorical, ConfigurationSpace, Float, Integer

from benchmarks.common.problems import Problem

Config = Mapping[str, Any]

_DOSES = np.geomspace(0.05, 500.0, 14)
_RESPONSE = (4.0, 1.3, 92.0, 6.0)  # half-maximal dose, slope, top and bottom of the curve that is fitted
_LEVELS = {"none": 0.0, "snappy": 0.35, "zstd": 0.2}  # of the loss of the queue


def decibel(value: float, target: float) -> float:
    return 20 * float(np.log10(value / target))


def queue(config: Config) -> float:
    """Return the latency of a message queue whose batches, buffers and waits have to suit each other."""
    batch, buffer, wait = (np.log2(config[name]) for name in ("batch", "buffer", "wait"))
    fit = 0.25 * (batch - 6.5) ** 2 + 0.12 * (buffer - batch - 3) ** 2 + 0.18 * (wait - 0.6 * batch) ** 2
    threads = 0.02 * (config["threads"] - 11) ** 2
    return float(1.0 + fit + threads + _LEVELS[config["compression"]])


def boosting(config: Config) -> float:
    """Return a formula of the error of boosted trees: steps and their number, leaves, and a penalty."""
    progress = np.log(config["rate"] * config["trees"] / 12.0)
    detail = np.log(config["leaf"] / 9.0)
    penalty = np.log((config["l2"] + 0.02) / 0.8)
    return float(
        0.2 + 0.05 * progress**2 + 0.03 * np.log(config["rate"] / 0.03) ** 2 + 0.04 * detail**2 + 0.01 * penalty**2
    )


@cache
def _diabetes() -> tuple[Any, Any]:
    from sklearn.datasets import load_diabetes

    data = load_diabetes()
    return data.data / data.data.std(axis=0), data.target


def kernel_ridge(config: Config) -> float:
    """Return the cross-validated root mean squared error of kernel ridge regression of disease progression."""
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.model_selection import KFold, cross_val_predict

    x, y = _diabetes()
    model = KernelRidge(kernel="rbf", alpha=config["alpha"] + 1e-9, gamma=config["gamma"])
    predicted = cross_val_predict(model, x, y - y.mean(), cv=KFold(5, shuffle=True, random_state=0))
    return float(np.sqrt(np.mean((predicted - y + y.mean()) ** 2)))


def response(half: float, slope: float, top: float, bottom: float) -> np.ndarray:
    return bottom + (top - bottom) / (1 + (half / _DOSES) ** slope)


def dose_response(config: Config) -> float:
    """Return the root mean squared difference from a dose-response curve."""
    curve = response(config["half"] + 1e-6, config["slope"], config["top"], config["bottom"])
    return float(np.sqrt(np.mean((curve - response(*_RESPONSE)) ** 2)))


def band_pass(config: Config) -> float:
    """Return by how many decibels two corner frequencies and the gain of an amplifier miss their targets."""
    low = 1 / (2 * np.pi * config["r1"] * config["c1"] * 1e-9)
    high = 1 / (2 * np.pi * config["r2"] * config["c2"] * 1e-9)
    gain = config["r2"] / config["r1"]
    misses = [decibel(low, 300.0), decibel(high, 3400.0), decibel(gain, 4.0)]
    return float(np.sqrt(np.mean(np.square(misses))))


def synthesis(config: Config) -> float:
    """Return the negated yield of a reaction whose product decays, in per cent; the time and catalyst act by ratios."""
    rate = config["catalyst"] / (config["catalyst"] + 0.004) * np.exp(6.0 - 3200.0 / config["temperature"])
    decay = 4e-4 * np.exp(8.0 - 3600.0 / config["temperature"])
    grown = 1 - np.exp(-rate * config["time"] / 120.0)
    kept = np.exp(-decay * config["time"])
    poison = np.exp(-config["catalyst"] / 0.6)
    return float(-100 * grown * kept * poison)


def mixer(config: Config) -> float:
    """Return a bowl in the values of wide ranges, with an interaction: nothing depends on ratios."""
    time, speed, mass = config["time"] / 300, config["speed"] / 1500, config["mass"] / 2000
    away = (time - 0.62) ** 2 + 2 * (speed - 0.45 - 0.3 * time) ** 2 + 1.5 * (mass - 0.7) ** 2
    return float(away + 0.5 * time * mass)


def ripples(config: Config) -> float:
    """Return a wave in the values of ranges from 0."""
    x, y, z = config["x"] / 1000, config["y"] / 50, config["z"] / 8
    return float((x - 0.4) ** 2 + (y - 0.7) ** 2 + z - 0.3 * np.cos(9 * x) * np.cos(7 * y) - 0.6 * np.sin(3 * z))


def thrust(config: Config) -> float:
    """Return the negated efficiency of a propeller: smooth in diameter and speed, whose ranges span two decades."""
    tip = config["diameter"] * config["speed"] / 60 * np.pi
    load = config["blades"] * config["pitch"]
    return float(-np.exp(-(((tip - 150) / 90) ** 2)) * (1 - 0.02 * (load - 60) ** 2 / 60) + 0.002 * config["diameter"])


SCALES = {
    "queue": Problem(
        ConfigurationSpace(
            [
                Integer("batch", (1, 5000)),
                Integer("buffer", (1, 50000)),
                Integer("wait", (1, 1000)),
                Integer("threads", (1, 32)),
                Categorical("compression", list(_LEVELS)),
            ]
        ),
        queue,
        np.nan,
    ),
    "boosting": Problem(
        ConfigurationSpace({"rate": (0.001, 1.0), "trees": (10, 3000), "leaf": (1, 500), "l2": (0.0, 100.0)}),
        boosting,
        0.2,
    ),
    "kernel ridge": Problem(
        ConfigurationSpace({"alpha": (0.0, 50.0), "gamma": (0.0001, 10.0)}),
        kernel_ridge,
        np.nan,
    ),
    "dose response": Problem(
        ConfigurationSpace(
            [
                Float("half", (0.0, 1000.0)),
                Float("slope", (0.2, 5.0)),
                Float("top", (50.0, 120.0)),
                Float("bottom", (-10.0, 30.0)),
            ]
        ),
        dose_response,
        0.0,
    ),
    "band pass": Problem(
        ConfigurationSpace({"r1": (100.0, 1e6), "r2": (100.0, 1e6), "c1": (0.01, 1000.0), "c2": (0.01, 1000.0)}),
        band_pass,
        0.0,
    ),
    "synthesis": Problem(
        ConfigurationSpace({"time": (1.0, 5000.0), "catalyst": (0.0, 1.0), "temperature": (300.0, 480.0)}),
        synthesis,
        np.nan,
    ),
    "mixer": Problem(
        ConfigurationSpace({"time": (1.0, 300.0), "speed": (10.0, 1500.0), "mass": (5, 2000)}), mixer, np.nan
    ),
    "ripples": Problem(ConfigurationSpace({"x": (0.0, 1000.0), "y": (0.0, 50.0), "z": (0.0, 8.0)}), ripples, np.nan),
    "propeller": Problem(
        ConfigurationSpace(
            [
                Float("diameter", (0.1, 30.0)),
                Float("speed", (10.0, 6000.0)),
                Integer("blades", (2, 8)),
                Float("pitch", (1.0, 40.0)),
            ]
        ),
        thrust,
        np.nan,
    ),
}
"""Functions by name; effects of the last three depend on differences or products, not on ratios alone."""
