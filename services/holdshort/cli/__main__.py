"""`python -m holdshort.cli`, which is how services are started by `up` and the demo."""

from holdshort.cli import main

main()
