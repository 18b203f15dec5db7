"""Questions about everybody whom a schema allows: proofs, draws, regions."""
