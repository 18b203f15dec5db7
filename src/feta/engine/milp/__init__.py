"""The paper's encoding on a MILP solver, whose word is never taken for proof."""
