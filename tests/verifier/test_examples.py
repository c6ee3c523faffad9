"""The table of the verifier's page: each reason has an answer that earns it."""

import pytest

from dapo_lib.verifier import REASONS, verify
from dapo_lib.verifier.examples import EXAMPLES


def test_every_reason_has_an_example():
    assert set(EXAMPLES) == set(REASONS)


@pytest.mark.parametrize("reason", REASONS)
def test_the_example_earns_its_reason(reason):
    response, reference, mode = EXAMPLES[reason]
    assert verify(response, reference, mode=mode).reason == reason
