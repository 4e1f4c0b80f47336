"""What ``slayr --help`` says. A line with a backspace keeps the paragraph after it as it is written here."""

from __future__ import annotations

SLAYR = """\
Bayesian optimisation with fully Bayesian Gaussian processes in Stan.

\b
Start here:
  slayr doctor                     is everything here that Stan needs?
  slayr optimize examples/nusvr_diabetes.toml
  slayr inspect nusvr_diabetes.db  what was found, and can its fits be trusted?

\b
Exit codes:
  0    all went well
  1    a study, an objective or a fit failed
  2    a wrong option, configuration file or table
  3    no usable compiler or CmdStan (slayr doctor says more)
  4    a study's storage, or a record, that does not open
  130  interrupted; what was evaluated is kept
slayr replay has its own 1 and 2: see slayr replay --help
"""

DOCTOR = """\
Check the compiler, CmdStan and the cache, and say what to install.

Exit code 3 when something that Stan needs is missing.

\b
Examples:
  slayr doctor
  slayr doctor --build    (a minute or two, once)
"""

TOOLCHAIN = """\
What compiles Stan programs here.
"""

BUILD = """\
Compile every program of the suite, side by side, and what all of them are linked with.

Otherwise each is compiled when it is first fitted. Executables are kept in the cache: a second call does nothing.

\b
Example, for a container image or before a flight:
  slayr toolchain build
"""

OPTIMIZE = """\
Minimise (or maximise) an objective as a configuration file says.

The study is kept in SQLite: running the same command again goes on where it stopped, or does nothing when the
budget is spent. Options given here override the file.

\b
A configuration file:
  [study]                         # every key is optional
  name = "net"                    # default: the name of the file
  storage = "sqlite:///net.db"    # default: <name>.db in the output folder
  budget = 50                     # the initial design counts
  n_initial = 10
  seed = 1
  direction = "minimize"          # or "maximize"
  noisy = false                   # true: the objective varies, so asking
                                  # for the same again may pay
  timeout = 3600                  # seconds; then no further trial starts
  output = "results"              # default: the working directory

\b
  [objective]                     # one of the two
  function = "net:loss"           # loss(config) in net.py beside this file
  command = ["{python}", "train.py", "--lr={lr}"]
                                  # run without a shell; the last line it
                                  # writes is the value; {config} stands for
                                  # the configuration as JSON
  timeout = 600                   # seconds, for a command

\b
  [space]                         # or file = "space.json" (ConfigSpace's own)
  lr = { type = "float", lower = 1e-4, upper = 0.1, log = true }
  layers = { type = "integer", lower = 1, upper = 5 }
  act = { type = "categorical", choices = ["relu", "leaky", "tanh"] }
  size = { type = "ordinal", sequence = ["small", "medium", "large"] }
  slope = { type = "float", lower = 0, upper = 1, when = { act = "leaky" } }
  epochs = { type = "constant", value = 20 }

\b
  [graphs]                        # optional: which levels are alike
  layers = "path"                 # or "complete"; an integer gets levels
  act = [["relu", "leaky"], ["leaky", "tanh", 0.5]]
                                  # edges of your own; a third entry is the
                                  # weight of one

\b
  [gp]                            # every key is optional
  kernel = "auto"                 # or another, see below
  method = "nuts"                 # or "pathfinder", "laplace", "map"
  chains = 4
  warmup = 300                    # of a first fit; the others begin warm
  draws = 50                      # a chain; more until there are enough
  ess = 50                        # effective samples that are enough
  warm_starts = true
  target_acceptance = 0.8         # higher: smaller steps, fewer divergences
  max_treedepth = 10
  retries = 1                     # how often a fit that fails its diagnostics
                                  # is made again, with what they ask for
  priors = { sigma_n = { family = "LogNormal", mu = -2.0, sigma = 1.0 } }

\b
  [acquisition]
  name = "lcb"                    # or "ei" (the default), "log_ei", "pi"
  delta = 0.1                     # of "lcb"

\b
Kernels, with their options as in  kernel = { name = "matern", p = 2 }:
  auto          hierarchical if the space has conditions, else fm if it has
                ordinal or categorical parameters, else matern
  matern        p = 2             order, nu = p + 1/2
  hierarchical  base = "se"       or "rq", "matern" (with p)
                combine = "product"   or "sum"
  fm            modulator = "laplacian"   or "neural", "diffusion",
                "power" (with orders = 3, tau = 2.0),
                { name = "hierarchical", base = "se" }
  separable     graph = "laplacian", combine = "product"

Files named in a configuration (space, module, the working directory of a command) are looked up beside it;
storage and output are relative to the working directory.

\b
Examples:
  slayr optimize examples/nusvr_diabetes.toml
  slayr optimize net.toml --budget 100 --output results
"""

INSPECT = """\
Show a study: the best configuration, its trials, and the diagnostics of every fit.

\b
What the diagnostics mean:
  rhat    near 1: the chains agree; above 1.03, in a loop 1.11: do not
          trust the fit
  ess     effective number of draws, in the bulk and in the tails: hundreds
  div     divergent transitions: many, and a corner may be missing
  treedepth  trajectories that were cut short
  ebfmi   energy fraction: below 0.2 the sampler moves badly
  k_draft    whether an approximation covers the posterior: at most 0.7
  k_loo   how much hangs on a single observation; a note, not a failure
  start, attempts  where the chains began, and how many fits it took
  ok      all but k_loo within their limits, which stand below the table
  *       beside the number: the suggestion does not come from such a fit

\b
Examples:
  slayr inspect nusvr_diabetes.db
  slayr inspect sqlite:///studies.db --study-name net --figure net.png
"""

FIT = """\
Fit a Gaussian process to a table and look at its posterior.

Every column but the target is a parameter: numbers become floats or integers, anything else categories. With
--space, the space's parameters are taken, and an empty cell is an inactive one. Prints the posterior's summary and
diagnostics, and saves the posterior and ArviZ's trace and pair figures. Exit code 1 when the diagnostics say the fit
should not be trusted.

\b
Examples:
  slayr fit runs.csv --target loss
  slayr fit runs.csv --target loss --space space.json --method pathfinder
"""

REPLAY = """\
Make a recorded fit again and compare: that of a saved posterior, from record.json and the data.json
beside it, or the one behind a suggestion, from its study.

On the same machine with the same compiler and packages every bit of every draw is the same. Elsewhere it says what
differs, and whether means and standard deviations of the hyperparameters agree within their Monte Carlo errors.

\b
Exit codes:
  0  identical, bit for bit
  1  not identical, but the summaries agree
  2  the summaries disagree, or Stan fails; also a wrong option, or a trial without a fit
  3  no usable compiler or CmdStan
  4  no readable record, or the data are not those of the record

\b
Examples:
  slayr replay runs_posterior
  slayr replay runs_posterior/record.json
  slayr replay study.db --trial 14
"""
