"""An independent checker of FETA's certificates: the standard library only, integers and fractions.

It shares no code with FETA. `python -m feta_check FOLDER` re-proves the claims of a certificate.
"""
