"""The fixtures of these tests; what they share is in old_kernel_lab.py."""
from old_kernel_lab import lab, usual, without  # noqa: F401
