"""`dapo train --setting hf` on what `datasets` writes, and on names, without a network.

`python data_folders.py FOLDER`: FOLDER is tiny.py's; prints JSON, by case the exit
code and what was said on each stream. Left out: training; no iteration is run.
"""

import contextlib
import io
import json
import sys
from pathlib import Path

CASES = {
    "rows": "saved",
    "splits": "dict",
    "one split": "dict/test",
    "no train": "odd",
    "parquet": "parquet",
    "lines": "lines",
    "half": "half",
    "name": "openai/gsm8k:main:train",
}


def write(folder):
    """The same six questions in every form; two of them are the test split."""
    import datasets

    rows = [{"question": f"{i % 2}=", "answer": str(i % 2)} for i in range(6)]
    whole = datasets.Dataset.from_list(rows)
    test = whole.select([0, 1])
    whole.save_to_disk(folder / "saved")
    datasets.DatasetDict(train=whole, test=test).save_to_disk(folder / "dict")
    datasets.DatasetDict(test=test, dev=whole).save_to_disk(folder / "odd")
    for name, kind in (("parquet", "to_parquet"), ("lines", "to_json")):
        (folder / name).mkdir()
        ending = {"parquet": "parquet", "lines": "jsonl"}[name]
        for split, part in (("train", whole), ("test", test)):
            getattr(part, kind)(str(folder / name / f"{split}-00000.{ending}"))
    whole.save_to_disk(folder / "half")
    next((folder / "half").glob("*.arrow")).write_bytes(b"ARROW1")


def ask(main, tiny, given, out):
    """One run of the command, without an iteration."""
    command = ["train", "--setting", "hf", "--offline", "--config", "laptop"]
    command += ["--model", str(tiny / "model"), "--group-size", "8"]
    command += ["--iterations", "0", "--set", "data.prompt={question}"]
    said, wrong = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(wrong):
        code = main([*command, "--data", given, "--out", str(out)])
    lines = wrong.getvalue().splitlines()
    if code:  # what stands before are the progress bars of a model that loads
        lines = [x for x in lines if x and "it/s]" not in x]
    return {"code": code, "out": said.getvalue().splitlines(), "error": lines}


def main(tiny):
    """All cases, one after the other."""
    from dapo_lib.cli import main as dapo

    place = tiny / "datasets"
    found = {}
    # the first case imports datasets as the command does
    found["name"] = ask(dapo, tiny, CASES["name"], tiny / "out-name")
    write(place)
    for i, (name, given) in enumerate(CASES.items()):
        if name not in found:
            found[name] = ask(dapo, tiny, str(place / given), tiny / f"out-{i}")
    print("RESULT " + json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
