"""Sessions and labels: what a program does to be profiled."""
