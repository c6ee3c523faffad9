"""A program, not tests: `python tests/mutation/run.py`."""

collect_ignore_glob = ["*.py"]
