"""What XLA is asked to dump."""

PASSES = "shardy|spmd-partitioning"
"""What `--xla_dump_hlo_pass_re` matches, so that a dump says who asked for each collective."""
