"""Large random tests, run by hand; VERIFICATION.md has their last results."""
