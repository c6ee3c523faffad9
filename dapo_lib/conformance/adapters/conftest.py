"""Test collection: the peers' adapters import packages of other environments.

Left out: fixtures.
"""

collect_ignore = ["openrlhf.py", "trl.py", "verl.py"]
