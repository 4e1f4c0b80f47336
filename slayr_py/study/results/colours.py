"""Colours of the figures of a study on a white background; `report.palette` has those that replace them in the page."""

TRIAL = "#4c72b0"
BEST = "#c44e52"
RUNNING = "#55a868"
DESIGN = "#ebebeb"
VIOLATING = "#808080"
FAILED = "#4d4d4d"
