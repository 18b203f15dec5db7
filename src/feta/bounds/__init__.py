"""Stage 3: what each neuron can do over parts of a person's counterparts; all rounded outward."""
