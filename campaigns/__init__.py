"""Campaigns: large random trials, run by hand; their last results are in VERIFICATION.md."""
