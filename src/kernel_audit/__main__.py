"""`python -m kernel_audit` is the command line."""

from kernel_audit.cli import main

main()
