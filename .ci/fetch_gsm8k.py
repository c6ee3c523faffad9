"""Write GSM8K as train.jsonl and test.jsonl through the `datasets` library."""

import json
import sys
from pathlib import Path

from datasets import load_dataset

folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for split in ("train", "test"):
    rows = load_dataset("openai/gsm8k", "main", split=split)
    kept = ({"question": r["question"], "answer": r["answer"]} for r in rows)
    lines = map(json.dumps, kept)
    (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
