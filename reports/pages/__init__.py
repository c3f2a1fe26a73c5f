"""All tables on one page, and as LaTeX and Markdown."""
