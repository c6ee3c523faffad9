"""Our own word-problem templates, as data: one YAML file a topic, en beside zh.

A template has `draw` (name: [low, high, step]), `steps` (expressions of the drawn
numbers and earlier results r1, r2, ...), optionally `positive` (expressions that must
be above 0) and `decimals` (results of up to two places, else integers), and in each
language a question and one sentence a step. Left out: code; embedded.py reads these.
"""
