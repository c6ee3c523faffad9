"""`python -m dapo_lib.cli` is the same as `dapo`."""

from dapo_lib.cli import entry

entry()
