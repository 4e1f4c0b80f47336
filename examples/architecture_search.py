"""Search for a convolutional network and the settings of its training together.

The space is that of Oh, Gavves & Welling (2021), supplement 4.2: 8,153,726,976 blocks, modified from Zoph & Le (2016),
and six settings of stochastic gradient descent. A network stacks three blocks with downsampling between them. A block
has four states: state i adds the results of two operations on two of the states -1, 0, ..., i - 1, of which -1 and 0
are the inputs of the block. Its outputs are state 4 and one of the states 1, 2 and 3.

The objective is f = error + 0.02 FLOPs / largest FLOPs. As in the paper, the model is fitted to log f, which the study
minimises. The error is that on half of the 8 x 8 digits that scikit-learn ships, averaged over two initialisations; the
paper has FashionMNIST, 25 epochs and four initialisations. Training is seeded and has one thread, so that a
configuration has the same value whenever it is evaluated on one machine. Requires PyTorch:

    pip install "slayr-py[torch]"        # or: pip install torch
    python architecture_search.py --budget 30
    python architecture_search.py --budget 100 --data optdigits.csv
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations
from math import exp, log
from pathlib import Path
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
from ConfigSpace import Categorical, ConfigurationSpace, Float, OrdinalHyperparameter
from sklearn.datasets import load_digits

import slayr_py as sl

Pair = tuple[int, int]

OPERATIONS = ("identity", "conv1", "conv3", "conv5", "separable3", "separable5", "maxpool3", "maxpool5")
INPUTS: dict[int, list[Pair]] = {
    state: [pair for pair in combinations(range(-1, state), 2) if (state, pair) != (4, (-1, 0))]
    for state in (1, 2, 3, 4)
}
"""Pairs of inputs of each state; without (-1, 0) for state 4, since the other states would then have no effect on it.
State 1 has one pair, so that it has no parameter."""

SIDES = (8, 4, 2)  # pixels along a side of the images in each block
CHANNELS = 8
CLASSES = 10
EPOCHS = 4
BATCH = 64
INITIALISATIONS = 2
COST = 0.02


def make_space() -> ConfigurationSpace:
    """Build the space: parameters of the block, and those of the training (supplement, table 4)."""
    space = ConfigurationSpace()
    for state, pairs in INPUTS.items():
        if len(pairs) > 1:
            space.add(Categorical(f"inputs{state}", [str(pair) for pair in pairs]))
        for side in ("a", "b"):
            space.add(Categorical(f"op{state}{side}", OPERATIONS))
    space.add(
        OrdinalHyperparameter("output", [1, 2, 3]),
        Float("learning_rate", (1e-3, 1e-1), log=True),
        Float("momentum", (0.8, 1.0)),
        Float("weight_decay", (1e-6, 1e-2), log=True),
        Float("reduction", (0.1, 0.9)),
        Float("first_point", (0.0, 1.0)),
        Float("second_point", (0.0, 1.0)),
    )
    return space


def input_graph(pairs: Sequence[Pair]) -> nx.Graph:
    """Join two pairs if they share one input and the others differ by one."""
    graph = nx.Graph()
    graph.add_nodes_from(str(pair) for pair in pairs)
    for one, other in combinations(pairs, 2):
        different = set(one) ^ set(other)
        if len(different) == 2 and max(different) - min(different) == 1:
            graph.add_edge(str(one), str(other))
    return graph


def make_graphs() -> dict[str, nx.Graph]:
    """Build the graphs of the inputs. Operations have the default of a category, a complete graph, outputs a path."""
    return {f"inputs{state}": input_graph(pairs) for state, pairs in INPUTS.items() if len(pairs) > 1}


class Architecture(NamedTuple):
    """A block: the inputs and operations of each state, and its first output; the second one is state 4."""

    inputs: dict[int, Pair]
    operations: dict[int, tuple[str, str]]
    output: int

    @property
    def used(self) -> list[int]:
        """States on which an output depends, in order; the others are not computed."""
        found = {4, self.output}
        for state in (4, 3, 2):
            if state in found:
                found |= {source for source in self.inputs[state] if source > 0}
        return sorted(found)


def architecture_of(config: Mapping[str, Any]) -> Architecture:
    """Read the block from a configuration."""
    pairs = {state: {str(pair): pair for pair in pairs} for state, pairs in INPUTS.items()}
    inputs = {state: by_text[config.get(f"inputs{state}", "(-1, 0)")] for state, by_text in pairs.items()}
    operations = {state: (config[f"op{state}a"], config[f"op{state}b"]) for state in INPUTS}
    return Architecture(inputs, operations, int(config["output"]))


def operation_flops(name: str, side: int) -> int:
    """Count the multiplications and additions of a convolution, or the comparisons of a pooling."""
    results = CHANNELS * side**2
    if name == "identity":
        return 0
    width = int(name[-1])
    if name.startswith("maxpool"):
        return results * (width**2 - 1)
    if name.startswith("separable"):
        return 2 * results * (width**2 + CHANNELS)
    return 2 * results * CHANNELS * width**2


def flops(architecture: Architecture) -> int:
    """Count the operations for one image: the first convolution, the used states of each block and the linear layer."""
    total = 2 * CHANNELS * SIDES[0] ** 2 * 3**2 + 2 * (2 * CHANNELS) * CLASSES
    for side in SIDES:
        for state in architecture.used:
            total += sum(operation_flops(name, side) for name in architecture.operations[state])
            total += CHANNELS * side**2  # the sum of the two results
    return total


def largest_flops() -> int:
    """Count the operations of the largest network: convolutions of 5 x 5 pixels in all states, each used."""
    chain: dict[int, Pair] = {1: (-1, 0), 2: (0, 1), 3: (1, 2), 4: (2, 3)}
    return flops(Architecture(chain, dict.fromkeys(chain, ("conv5", "conv5")), 3))


def learning_rate(config: Mapping[str, Any], epoch: int, epochs: int) -> float:
    """Return the learning rate of an epoch, counted from 1: reduced after each of two epochs (supplement, table 5)."""
    first = config["first_point"]
    points = (epochs * first, epochs * (first + (1 - first) * config["second_point"]))
    reductions = sum(epoch > point for point in points)
    return float(config["learning_rate"] * config["reduction"] ** reductions)


def make_network(architecture: Architecture) -> Any:
    """Build a network for each initialisation in PyTorch, as groups of channels that do not see each other.

    One network of several groups is faster than several networks, since the images are small. A convolution is followed
    by batch normalisation and a rectifier.
    """
    import torch
    from torch import nn

    channels = INITIALISATIONS * CHANNELS

    def convolution(width: int, groups: int = INITIALISATIONS, inputs: int = channels) -> nn.Module:
        return nn.Conv2d(inputs, channels, width, padding=width // 2, groups=groups, bias=False)

    def operation(name: str) -> nn.Module:
        if name == "identity":
            return nn.Identity()
        width = int(name[-1])
        if name.startswith("maxpool"):
            return nn.MaxPool2d(width, stride=1, padding=width // 2)
        separable = name.startswith("separable")
        layers = [convolution(width, groups=channels), convolution(1)] if separable else [convolution(width)]
        return nn.Sequential(*layers, nn.BatchNorm2d(channels), nn.ReLU(inplace=True))

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Sequential(convolution(3, groups=1, inputs=1), nn.BatchNorm2d(channels))
            names = [name for state in architecture.used for name in architecture.operations[state]]
            self.blocks = nn.ModuleList([nn.ModuleList([operation(name) for name in names]) for _ in SIDES])
            self.linear = nn.Conv2d(2 * channels, INITIALISATIONS * CLASSES, 1, groups=INITIALISATIONS)

        def forward(self, images: Any) -> Any:
            """Return the logits, (images, classes, initialisations)."""
            first = second = self.stem(images)
            for number, operations in enumerate(self.blocks):
                if number > 0:
                    first, second = (nn.functional.max_pool2d(x, 2) for x in (first, second))
                states = {-1: first, 0: second}
                results = iter(operations)
                for state in architecture.used:
                    a, b = architecture.inputs[state]
                    states[state] = next(results)(states[a]) + next(results)(states[b])
                first, second = states[architecture.output], states[4]
            maxima = [x.amax((2, 3)).unflatten(1, (INITIALISATIONS, CHANNELS)) for x in (first, second)]
            logits = self.linear(torch.cat(maxima, dim=2).flatten(1)[:, :, None, None])
            return logits.unflatten(1, (INITIALISATIONS, CLASSES))[..., 0, 0].transpose(1, 2)

    return Network().to(memory_format=torch.channels_last)


def trained_error(config: Mapping[str, Any], train: Any, valid: Any, epochs: int = EPOCHS) -> float:
    """Train the network and return the share of misclassified images, averaged over the initialisations."""
    import torch

    images, labels = train
    torch.manual_seed(0)
    network = make_network(architecture_of(config))
    options = {name: config[name] for name in ("momentum", "weight_decay")}
    optimiser = torch.optim.SGD(network.parameters(), lr=config["learning_rate"], **options, foreach=True)
    network.train()
    for epoch in range(1, epochs + 1):
        optimiser.param_groups[0]["lr"] = learning_rate(config, epoch, epochs)
        for rows in torch.randperm(len(labels)).split(BATCH):
            optimiser.zero_grad()
            repeated = labels[rows, None].expand(-1, INITIALISATIONS)
            # The sum over the initialisations: each has the gradient of its own mean loss.
            loss = INITIALISATIONS * torch.nn.functional.cross_entropy(network(images[rows]), repeated)
            loss.backward()
            optimiser.step()
    network.eval()
    with torch.no_grad():
        return float((network(valid[0]).argmax(dim=1) != valid[1][:, None]).double().mean())


def read_images(path: Path | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the images (n, 64) with values from 0 to 16 and their labels: of scikit-learn, or of a CSV file.

    A row of the file has the 64 pixels of an image and its digit.
    """
    if path is None:
        return load_digits(return_X_y=True)
    try:
        table = np.loadtxt(path, delimiter=",", skiprows=1)
    except (OSError, ValueError) as error:
        sys.exit(f"{path} cannot be read: {error}")
    if table.ndim != 2 or table.shape[1] != 65:
        sys.exit(f"{path} has rows of {table.shape[-1]} numbers; give 64 pixels and a digit in each row")
    return table[:, :-1], table[:, -1].astype(int)


def make_error(path: Path | None = None, epochs: int = EPOCHS) -> Callable[[Mapping[str, Any]], float]:
    """Load the data, half of which are for training, and return the error as a function of a configuration."""
    try:
        import torch
    except ImportError:
        sys.exit('This example needs PyTorch: pip install "slayr-py[torch]"')
    torch.set_num_threads(1)  # more threads gain nothing on so small images, and the results would depend on them
    pixels, digits = read_images(path)
    rows = np.random.default_rng(0).permutation(len(digits))
    images = torch.tensor(pixels / 16, dtype=torch.float32).view(-1, 1, 8, 8).to(memory_format=torch.channels_last)
    labels = torch.tensor(digits)
    halves = [(images[half], labels[half]) for half in np.array_split(rows, 2)]

    return partial(trained_error, train=halves[0], valid=halves[1], epochs=epochs)


def make_objective(error: Callable[[Mapping[str, Any]], float]) -> Callable[[Mapping[str, Any]], float]:
    """Return log f as a function of a configuration."""

    def log_objective(config: Mapping[str, Any]) -> float:
        return log(error(config) + COST * flops(architecture_of(config)) / largest_flops())

    return log_objective


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study and print the best network."""
    parser = argparse.ArgumentParser(description="Search for a network and the settings of its training together.")
    parser.add_argument("--budget", type=int, default=30, help="number of evaluations, including ten initial ones")
    parser.add_argument("--data", type=Path, help="CSV file with 64 pixels and a digit in each row")
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="epochs of training (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--method", default="carried", help='fit method; "map" is fast but only a point estimate')
    options = parser.parse_args(arguments)

    error = make_error(options.data, options.epochs)
    space = sl.space.Encoder(make_space(), make_graphs())
    result = sl.minimize(
        make_objective(error), space, budget=options.budget, seed=options.seed, method=options.method, n_initial=10
    )
    best = architecture_of(result.best_config)
    share = flops(best) / largest_flops()
    error_of_best = exp(result.best_value) - COST * share
    print(f"f = {exp(result.best_value):.4f}: error {error_of_best:.2%}, {share:.1%} of the largest FLOPs")
    for state in best.used:
        a, b = best.operations[state]
        print(f"  state {state} = {a}({best.inputs[state][0]}) + {b}({best.inputs[state][1]})")
    print(f"  outputs: states {best.output} and 4")
    for name in ("learning_rate", "momentum", "weight_decay", "reduction", "first_point", "second_point"):
        print(f"  {name} = {result.best_config[name]:.4g}")


if __name__ == "__main__":
    main()
