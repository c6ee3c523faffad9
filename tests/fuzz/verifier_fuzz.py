"""Coverage-guided fuzzing of the verifier with atheris (not a dependency of ours).

Run `python tests/fuzz/verifier_fuzz.py -max_total_time=300 -max_len=4096 FOLDER`.
It stops on an exception, on a verdict that contradicts itself, and on an input slower
than 10 ms per 100 kB.
Left out: a corpus of our own; libFuzzer grows one in FOLDER.
"""

from __future__ import annotations

import sys
import time

import atheris

with atheris.instrument_imports():
    from dapo_lib.verifier import MODES, REASONS, verify

LIMIT_S = 0.010


def one_input(data: bytes) -> None:
    """Two bytes of choices, a reference, a response; then check the verdict."""
    if len(data) < 3:
        return
    mode = MODES[data[0] % 4]
    cut = 3 + data[1] % 16
    reference = data[3:cut].decode("utf-8", "replace")
    response = data[cut:].decode("utf-8", "replace") * (1 + data[2] % 40)
    start = time.thread_time()
    verdict = verify(response, reference, mode=mode)
    seconds = time.thread_time() - start
    assert verdict.reason in REASONS
    assert verdict.correct in (True, False, None)
    assert (verdict.correct is None) == (verdict.reason == "reference_unparsable")
    assert verdict.value is None or verdict.extracted is not None
    if verdict.value is not None:
        again = verify(str(verdict.value), str(verdict.value))
        assert again.correct is not False
    # instrumented code is several times slower than the code users run
    allowed = 10 * LIMIT_S * max(len(response.encode(errors="replace")) / 1e5, 1)
    if seconds > allowed:
        raise RuntimeError(f"{seconds:.3f} s for {len(response)} characters")


def main() -> None:
    """Hand the loop to libFuzzer; its options are the command line's."""
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
