"""verl 0.9.1 dynamic sampling: which groups it drops.

Sides taken: an integer count of right answers, so a constant reward of .1 is dropped
for every group size (verl's np.std == 0 keeps 3 x .1 and 3 x .7), a group of one is
dropped (verl keeps it), a penalty alone makes no signal ("overlongmix", all right).
"""

import torch

from dapo_lib.sampling import has_signal

OURS_DROPPED_THEIRS_KEPT = {"single", "p1x3", "p7x3", "tiny", "overlongmix"}


def test_verl_filter(oracle):
    data = oracle("verl_filter_groups")
    groups = data["groups"]
    # correct = the rule says right: a positive reward here, whatever its size
    n_correct = torch.tensor([sum(v > 0 for v in g) for g in groups.values()])
    size = torch.tensor([len(g) for g in groups.values()])
    kept = has_signal(n_correct, size).tolist()
    ours = {name for name, keep in zip(groups, kept, strict=True) if keep}
    assert ours == set(data["kept"]) - OURS_DROPPED_THEIRS_KEPT
    assert not ours & set(data["dropped"])
    assert set(data["kept"]) >= OURS_DROPPED_THEIRS_KEPT
