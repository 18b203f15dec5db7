"""Report: what an audit comes to, for people who were not there: HTML, Markdown, JUnit, differences."""
