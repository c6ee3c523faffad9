"""The language-model setting: a tiny transformer that writes its chain of thought.

Left out: the loop. Only how a policy samples and scores is here (see train.py).
"""
