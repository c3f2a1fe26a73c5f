"""Privacy: what was spent, under which conventions, and what attacks recover."""
