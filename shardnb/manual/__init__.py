"""The check of a `shard_map`: specs, varying axes, missing collectives."""
