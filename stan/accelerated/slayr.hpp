// Definitions of the likelihoods declared in functions/*_marginal.stan in this folder: the USER_HEADER of each program.
#include "composite.hpp"
#include "fm.hpp"
#include "hierarchical.hpp"
#include "matern.hpp"
