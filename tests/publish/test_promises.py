"""The page of promises: counts come from runs, and every promise has tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from dapo_lib.errors import BadInput, DamagedFile
from dapo_lib.publish import promises
from dapo_lib.publish.layout import Layout, find_layout

TESTS = Path(__file__).resolve().parents[1]
CASE = '<testcase classname="tests.{}" name="test_{}">{}</testcase>'


def junit(layout: Layout, suite: str, *cases: tuple[str, str]) -> None:
    folder = layout.build / "tests"
    folder.mkdir(parents=True, exist_ok=True)
    body = "".join(CASE.format(file, n, inner) for n, (file, inner) in enumerate(cases))
    text = f"<testsuites><testsuite>{body}</testsuite></testsuites>"
    (folder / f"{suite}.xml").write_text(text)


@pytest.fixture
def layout(tmp_path) -> Layout:
    """A checkout in which two suites have run."""
    made = Layout(tmp_path)
    passed = ("hostile.test_disk", "")
    junit(
        made, "test", passed, passed, ("verifier.test_x", "<skipped/>"), ("cli.t", "")
    )
    junit(made, "soak", ("soak.test_disk", ""))
    return made


def test_accepted_counts_reach_the_page_of_each_language(layout):
    total = promises.accept(layout)
    assert total["test"] == {"passed": 3, "skipped": 1, "failed": 0}
    promises.write(layout)
    for lang, said in (
        ("en", "3 tests passed, 0 skipped: `hostile.test_disk`, `soak.test_disk`"),
        ("zh", "3 项测试通过，0 项跳过：`hostile.test_disk`、`soak.test_disk`"),
    ):
        text = (layout.generated / f"promises.{lang}.md").read_text("utf-8")
        assert said in text and "| `make soak` | 1 | 0 |" in text
        assert text.count("\n**") == len(promises.PROMISES)


def test_a_failed_run_is_not_accepted(layout):
    junit(layout, "test", ("cli.t", "<failure/>"), ("cli.t", "<error/>"))
    with pytest.raises(BadInput, match=r"\{'test': 2\} failed"):
        promises.accept(layout)
    assert not promises.record_file(layout).exists()


def test_a_suite_that_was_not_run_keeps_its_last_counts(layout):
    promises.accept(layout)
    (layout.build / "tests" / "soak.xml").unlink()
    junit(layout, "test", ("cli.t", ""))
    total = promises.accept(layout)
    assert total["test"]["passed"] == 1 and total["soak"]["passed"] == 1


def test_no_run_and_a_cut_file_are_named(layout):
    path = layout.build / "tests" / "test.xml"
    data = path.read_bytes()
    for part in range(10):
        path.write_bytes(data[: len(data) * part // 10])
        with pytest.raises(DamagedFile, match=r"test\.xml: not a JUnit file"):
            promises.collect(layout)
    path.unlink()
    with pytest.raises(BadInput, match=r"no test\.xml; run `make test`"):
        promises.collect(layout)


@pytest.mark.parametrize("key", promises.PROMISES)
def test_every_promise_is_held_by_tests_that_exist_and_ran(key):
    for pattern in promises.PROMISES[key]:
        place = TESTS / pattern.replace(".", "/")
        assert place.is_dir() or place.with_suffix(".py").is_file(), pattern
    suites = promises.read_json(promises.record_file(find_layout()), promises.SCHEMA)[
        "suites"
    ]
    held = promises.held_by(suites, key)
    assert not sum(counts["failed"] for counts in held.values())
    if key != "site" or "site" in suites:  # the site is tested after it is built
        assert sum(counts["passed"] for counts in held.values()) > 0
