"""Several hosts: processes that run one JAX program together, started and addressed by ipyparallel.

Each engine is a process of JAX's multi-controller runtime (`jax.distributed`). The kernel keeps its
own JAX as it is: it sends calls, and names of arrays that stay where they are.

Nothing is imported here: the guard of a cluster starts in a third of the time without JAX.
"""
