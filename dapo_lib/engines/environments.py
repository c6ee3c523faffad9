"""Environments of their own for the engines' tests, beside the conformance suite's.

Left out: making them; see `conformance.environments.prepare`.
"""

from __future__ import annotations

from dapo_lib.conformance.environments import PEERS, Peer

LIBRARY = (
    "joblib",
    "numpy",
    "pandas",
    "pydantic",
    "pyyaml",
    "safetensors",
    "scipy",
    "tqdm",
    "typer",
)
RAY = Peer("ray", "", "ray==2.60.0", ("ray[default]==2.60.0", *LIBRARY))
ENGINES = {peer.name: peer for peer in (*PEERS, RAY)}
