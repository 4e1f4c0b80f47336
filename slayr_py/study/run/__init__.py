"""Run a study: `minimize`, ask and tell, past experiments, the evaluation of objectives, and the stopping rule."""
