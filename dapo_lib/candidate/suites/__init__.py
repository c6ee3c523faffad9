"""Small suites, one a mechanism, each where the mechanism acts, all by the one loop.

rare_gold      the upper clip: a right answer that starts at a small probability
padded_pairs   the overlong penalty: padding that has nothing to do with being right
real_solutions the filter: on correctness, or (the fault) on the shaped reward

`run` of each returns a tidy table: arm, seed, step (rollouts done), metric, value. Left
out: publishing, which is experiments/suites.py.
"""
