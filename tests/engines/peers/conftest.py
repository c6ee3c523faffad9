"""Test collection: these files run in the engines' own environments.

Left out: fixtures.
"""

collect_ignore_glob = ["*.py"]
