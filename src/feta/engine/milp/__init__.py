"""The paper's mixed-integer program on a solver, whose claims are never taken as proofs."""
