"""Privacy: mechanisms, what was spent and under which conventions, and what attacks recover."""
