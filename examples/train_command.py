"""Simulate a training program that takes arguments and prints the loss on its last line.

A program in any language can be used instead; ``train_command.toml`` shows how its arguments are filled in.
"""

import argparse
import math

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, required=True)
parser.add_argument("--optimizer", choices=["sgd", "adam"], required=True)
parser.add_argument("--momentum", type=float, default=0.0)
arguments = parser.parse_args()

best_lr = 1e-3 if arguments.optimizer == "adam" else 3e-2 * (1 - arguments.momentum)
loss = 0.1 + 0.05 * math.log10(arguments.lr / best_lr) ** 2
if arguments.optimizer == "sgd":
    loss += 0.2 * (arguments.momentum - 0.9) ** 2
print("training ... done")
print(loss)
