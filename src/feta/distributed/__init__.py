"""Arrow batches in, Arrow batches out: the same callables for every engine that has batches."""
