"""Campaign of tables with every content and every encoder, as files and as frames.

`python -m campaigns.tables` runs it; `campaigns.tables.__main__` describes the options.
"""
