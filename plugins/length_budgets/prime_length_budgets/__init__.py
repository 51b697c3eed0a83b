"""Length budgets: discrete."""
