"""Help texts of ``slayr``. A line with a backspace keeps the line breaks of the paragraph after it."""

from __future__ import annotations

SLAYR = """\
Bayesian optimisation with fully Bayesian Gaussian processes in Stan.

\b
Start here:
  slayr doctor                     check the compiler and CmdStan
  slayr example nusvr_diabetes     write an example into this folder
  slayr optimize nusvr_diabetes.toml
  slayr inspect nusvr_diabetes.db  show the result and the diagnostics
  slayr report nusvr_diabetes.db   write a page with figures

\b
Exit codes:
  0    success
  1    a study, an objective or a fit failed
  2    a wrong option, configuration file or table
  3    no usable compiler or CmdStan (see slayr doctor)
  4    a study's storage or a record does not open
  130  interrupted; finished evaluations are stored
Codes 1 and 2 of slayr replay differ: see slayr replay --help
"""

DOCTOR = """\
Check the compiler, CmdStan and the cache, and list what to install.

Exit code 3 if something that Stan needs is missing.

\b
Examples:
  slayr doctor
  slayr doctor --build    (once, a minute or two)
"""

TOOLCHAIN = """\
Manage the compiled Stan programs.
"""

BUILD = """\
Compile all Stan programs in parallel, and the libraries they need.

Without this command each program is compiled at its first fit. Executables are cached: a second call does nothing.

\b
Example, for a container image or before working offline:
  slayr toolchain build
"""

EXAMPLE = """\
Write the files of an example into the working directory, or list the examples.

An existing file is never overwritten.

\b
Examples:
  slayr example
  slayr example nusvr_diabetes
"""

OPTIMIZE = """\
Minimise (or maximise) the objective of a configuration file.

The study is stored in SQLite. Running the same command again resumes it, or does nothing if the budget is used up.
Options given here override the file.

\b
A configuration file:
  [study]                         # every key is optional
  name = "net"                    # default: the name of the file
  storage = "sqlite:///net.db"    # default: <name>.db in the output folder
  budget = 50                     # the initial design counts
  n_initial = 5                   # default: 4 to 10, by the dimension
  seed = 1
  direction = "minimize"          # or "maximize"
  noisy = false                   # true: the objective varies, and a
                                  # configuration may be repeated
  timeout = 3600                  # seconds; then no further trial starts
  output = "results"              # default: the working directory
  history = "runs.csv"            # past experiments: a column per parameter
                                  # and a column value (empty: it failed);
                                  # they do not count in the budget
  constraints = ["memory <= 8"]   # for a function that returns its value and
                                  # a dict of further numbers by name
  failures = "learn"              # or "ignore": do not model failures
  max_consecutive_failures = 10   # then stop; default: 10, or 3 before the
                                  # first success
  n_parallel = 1                  # evaluations at a time, in threads
  fixed = { layers = 2 }          # values that are not varied in this run
  stop = { epsilon = 0.01, probability = 0.95 }
                                  # stop before the budget is used up: when
                                  # P(regret < epsilon) is at least this

\b
  [objective]                     # a function or a command
  function = "net:loss"           # loss(config) in net.py beside this file
  command = ["{python}", "train.py", "--lr={lr}"]
                                  # run without a shell; the last line of its
                                  # output is the value; {config} stands for
                                  # the configuration as JSON; ends with slayr
  timeout = 600                   # seconds, for a command

\b
  [space]                         # or file = "space.json" (ConfigSpace JSON)
  lr = { type = "float", lower = 1e-4, upper = 0.1, log = true }
  layers = { type = "integer", lower = 1, upper = 5 }
  act = { type = "categorical", choices = ["relu", "leaky", "tanh"] }
  size = { type = "ordinal", sequence = ["small", "medium", "large"] }
  slope = { type = "float", lower = 0, upper = 1, when = { act = "leaky" } }
  epochs = { type = "constant", value = 20 }

\b
  [graphs]                        # optional: similarity of levels
  layers = "path"                 # or "complete"; makes levels of an integer
  act = [["relu", "leaky"], ["leaky", "tanh", 0.5]]
                                  # a list of edges; the optional third entry
                                  # is the weight

\b
  [gp]                            # every key is optional
  kernel = "auto"                 # or another kernel, see below, or an
                                  # expression: "LIN * PER + SE[lr]"
  method = "carried"              # importance sampling from the last fit, and
                                  # NUTS where that fails; or "nuts",
                                  # "pathfinder", "laplace", "map"
  chains = 4
  warmup = 300                    # of the first fit; others start warm
  draws = 50                      # per chain, at least
  ess = 50                        # sample until the ESS is this large
  warm_starts = true
  target_acceptance = 0.8         # larger: smaller steps, fewer divergences
  max_treedepth = 10
  retries = 1                     # number of retries of a fit whose
                                  # diagnostics fail, with adapted settings
  pointwise = false               # true: leave-one-out of every fit
  warp = "auto"                   # "log" (the same) or "none": compress bad
                                  # values, to describe good ones better
  priors = { sigma_n = { family = "LogNormal", mu = -2.0, sigma = 1.0 } }
                                  # or of one parameter: { lengthscale =
                                  # { lr = { family = "LogNormal", .. } } }

\b
  [pretrain]                      # instead of kernel in [gp]: a kernel learned
                                  # from data of a related problem
  data = "related.csv"            # a column per parameter, and one of values
  column = "value"                # name of the latter
  machine = "svr"                 # or "ridge", for more than a few hundred
  origin = "centre"               # or "corner", { lr = 0.25 }: where
                                  # symmetries are looked for
  layers = [1, 2]                 # uses of the learned features
  base = true                     # a Matern kernel for what they do not tell,
  p = 2                           # of this order
  clip = false                    # true: move values to the space's bounds
  C = 10.0                        # default: tuned, as lengthscale
  epsilon = 0.05                  # in standard deviations of the values
  family = "se"                   # or "exponential", "linear", "polynomial"
                                  # (with degree = 2, coef0 = 1.0)

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
  separable     graph = "laplacian"     or "diffusion"
                combine = "product"     or "sum"
                base = "se"             or "matern" (with p = 2)
  search        budget = 20       fits of each search for expressions, while the
                max_leaves = 4    study runs; base, strategy and other options
                                  as of slayr search
Sums and products of SE, RQ, PER, LIN, MAT12, MAT32, MAT52 and C, of all
parameters or of those in brackets, are kernels too, without options.

The space file, the history, the related data, the module and the working directory of a command are relative to the
folder of the configuration file; storage and output are relative to the working directory.

\b
Examples:
  slayr example nusvr_diabetes
  slayr optimize nusvr_diabetes.toml
  slayr optimize net.toml --budget 100 --output results
  slayr optimize net.toml --history runs.csv
"""

INSPECT = """\
Show a study: the best configuration, its trials, and the diagnostics of every fit.

\b
Diagnostics:
  rhat       near 1 if the chains agree; do not trust a fit above 1.03, or
             1.11 in a loop
  ess        effective sample size in the bulk and in the tails
  div        divergent transitions: many mean that the draws may miss a part
             of the posterior
  treedepth  trajectories stopped at the largest tree depth
  ebfmi      energy fraction: below 0.2 the sampler explores slowly
  pareto_k   error of importance sampling: at most 0.7
  method     carried: importance sampling from the draws of the last fit
  since_nuts number of fits since the last one by NUTS
  k_loo      influence of a single observation; a note, not a failure
  start      carried, or start of the chains, warm or cold
  attempts   number of fits
  ok         all but k_loo are within the limits printed below the table
  *          after the number: the suggestion does not come from such a fit

\b
Examples:
  slayr inspect nusvr_diabetes.db
  slayr inspect sqlite:///studies.db --study-name net --figure net.png
"""

REPORT = """\
Write a page about a study: one HTML file, which needs no network and no server.

It has what slayr inspect prints, and figures: convergence with the noise of the observations, importance of the
parameters, the posterior along each parameter and over pairs of them, hyperparameters, and feasibility. The page says
which parts are missing, and why.

The model is fitted to all finished trials, which takes seconds to minutes. Studies of other samplers and studies
without a fit have a page without the model.

\b
Examples:
  slayr report nusvr_diabetes.db
  slayr report sqlite:///studies.db --study-name net -o net.html
"""

FIT = """\
Fit a Gaussian process to a table and summarise its posterior.

Every column but the target is a parameter: floats, integers, or categories. Row numbers and dates are left out with a
note: columns with 0 to n - 1 or 1 to n in order, columns called run, trial, index, number or id, and columns of dates
or times. --parameter includes such a column, --ignore leaves out any other. With --space, the parameters are those of
the space, and an empty cell means that the parameter is inactive. A row with an empty target is an error, or is left
out with --drop-empty. Prints a summary and the diagnostics, and saves the posterior and ArviZ's trace and pair
figures. Exit code 1 if the diagnostics fail.

\b
Examples:
  slayr fit runs.csv --target loss
  slayr fit runs.csv --target loss --ignore seconds --ignore host
  slayr fit runs.csv --target loss --space space.json --method pathfinder
  slayr fit runs.csv --target loss --drop-empty  (failed runs have no loss)
  slayr fit runs.csv --target loss --warp log    (a few losses are far larger)
  slayr fit co2.csv --target ppm --kernel "LIN + SE * PER"
"""

SEARCH = """\
Search for the sum of products of base kernels that explains a table best.

Columns are chosen as by slayr fit. Every candidate is fitted by its posterior mode; nothing is compiled. The budget
counts fits. Prints the best expressions, and saves all fits and figures of the scores and, with a single real
parameter, of the summands of the best expression. At least 10 rows are needed.

\b
Examples:
  slayr search co2.csv --target ppm
  slayr search runs.csv --target loss --base SE,RQ,MAT52 --budget 200
  slayr search big.csv --target y --inducing 200 --no-single
"""

REPLAY = """\
Repeat a recorded fit and compare the draws: the fit of a saved posterior, from record.json and the data.json
beside it, or the fit behind a suggestion, from its study.

On the same machine with the same compiler and packages all draws are bit-identical. Otherwise the command lists the
differences of the environment, and whether means and standard deviations of the hyperparameters agree within their
Monte Carlo errors.

\b
Exit codes:
  0  identical, bit for bit
  1  not identical, but the summaries agree
  2  the summaries disagree, or Stan fails; also a wrong option, or a trial without a fit
  3  no usable compiler or CmdStan
  4  no readable record, or data that do not belong to the record

\b
Examples:
  slayr replay runs_posterior
  slayr replay runs_posterior/record.json
  slayr replay study.db --trial 14
"""
