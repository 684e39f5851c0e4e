"""One module a command; `command` is what the command line calls."""
