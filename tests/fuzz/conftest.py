"""The fuzz harness needs atheris, so only its test may import it."""

collect_ignore = ["verifier_fuzz.py"]
