"""Short forms of a wiring file: ranges and bulk links, read and written."""
