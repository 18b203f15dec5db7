"""Reports about audits, for people and programs, and differences between audits."""
