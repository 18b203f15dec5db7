"""Votes: how the scores of a person's counterparts become one mean, and the mean a decision."""
