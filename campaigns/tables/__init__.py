"""Campaign: tables of every content, through every encoder, as files and as frames.

`python -m campaigns.tables` runs it; `campaigns.tables.__main__` describes the options.
"""
