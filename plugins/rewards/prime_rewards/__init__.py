"""Reward functions: task, task_minus_length."""
