"""A conformance suite for DAPO: small inputs with known answers, for any system.

`rows` are the inputs, `protocol` what a system may answer, `adapters` how four systems
do, `run` asks them (each in a child process), `matrix` is the result; `traps` are the
same faults as functions that run.
Left out: whole training runs; `rows.OUTSIDE` names the rows that need one.
"""
