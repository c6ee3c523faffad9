"""Features describe one candidate: its five neighbours cannot change them."""

from dapo_lib.candidate import question
from dapo_lib.candidate.derivations import derive
from dapo_lib.candidate.features import FEATURES, features
from dapo_lib.candidate.table import Candidate, build, candidates
from dapo_lib.data.gsm8k import problem

ASKED = "Ann has 48 pens and half as many caps. How many has she altogether?"
PROBLEM = problem(ASKED, "<<48/2=24>> <<48+24=72>>\n#### 72")
OTHER = problem(ASKED + " Now?", "<<48*2=96>> <<96-48=48>> <<48/3=16>>\n#### 16")


def named(kind: str) -> dict[str, float]:
    six = candidates(ASKED, derive(PROBLEM), "verify")
    steps = next(c.steps for c in six if c.kind == kind)
    row = features(question.read(ASKED), steps)
    return dict(zip(FEATURES, row, strict=True))


def test_names_and_numbers_match() -> None:
    assert len(FEATURES) == len(set(FEATURES)) == 51


def test_each_kind_of_fault_shows() -> None:
    gold = named("gold")
    assert gold["equations_true"] == 1 and gold["ungrounded"] == 0
    assert named("slip")["equations_true"] == 0
    assert named("ungrounded")["ungrounded"] == 1
    assert gold["cue_half"] == 1 and gold["goal_total"] == 1


def test_a_candidates_features_do_not_change_when_the_others_do(monkeypatch) -> None:
    before = build([PROBLEM])
    other = derive(OTHER)

    def replaced(asked, gold, mix):
        """The same slot of gold, five quite different neighbours."""
        six = candidates(asked, gold, mix)
        return tuple(c if c.kind == "gold" else Candidate("slip", other) for c in six)

    monkeypatch.setattr("dapo_lib.candidate.table.candidates", replaced)
    after = build([PROBLEM])
    slot = int(before.gold[0])
    assert int(after.gold[0]) == slot
    assert (after.features[0, slot] == before.features[0, slot]).all()
    assert (after.features[0] != before.features[0]).any(1).sum() == 5
