"""Test collection: TRL's module needs TRL, which lives in an environment of its own.

Left out: fixtures.
"""

collect_ignore = ["trl.py"]
