"""A small network learns with the new operator: which of two spirals does a point belong to?

    python3 example.py [--steps 100] [--threshold 0.1]

Exit code 0 when it has learned (at least 95 % right), 1 when not.
"""

import argparse
import math
import sys

import torch
from torch import nn

from threshold_relu import ThresholdReLU


def spirals(points):
    """Points on two arms that wind around each other: (points, 2), and 0 or 1 for the arm."""
    arm = torch.arange(points) % 2
    along = torch.rand(points)
    angle = 3 * math.pi * along + math.pi * arm
    radius = 0.1 + 0.9 * along
    place = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)
    return place + 0.01 * torch.randn(points, 2), arm


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--threshold", type=float, default=0.1)
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(1)
    points, arm = (t.to(device) for t in spirals(2000))
    unseen, unseen_arm = (t.to(device) for t in spirals(1000))

    network = nn.Sequential(
        nn.Linear(2, 64), ThresholdReLU(options.threshold),
        nn.Linear(64, 64), ThresholdReLU(options.threshold),
        nn.Linear(64, 2)).to(device)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)

    def percent_right():
        with torch.no_grad():
            return 100 * (network(unseen).argmax(1) == unseen_arm).float().mean().item()

    print(f"on {device}, before learning: {percent_right():.1f} % right")
    for step in range(1, options.steps + 1):
        loss = nn.functional.cross_entropy(network(points), arm)
        optimizer.zero_grad()
        loss.backward()  # passes through threshold_relu::backward, twice
        optimizer.step()
        if step % max(1, options.steps // 4) == 0:
            print(f"step {step:4}: loss {loss.item():.4f}, {percent_right():.1f} % right")
    return 0 if percent_right() >= 95 else 1


if __name__ == "__main__":
    sys.exit(main())
