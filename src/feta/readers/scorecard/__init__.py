"""Reader of scorecards."""
