"""How four systems answer the protocol; `environments.py` says where each is run.

Left out: imports. Each file but `ours` runs in its peer's own environment, with the
standard library, torch and the peer alone.
"""
