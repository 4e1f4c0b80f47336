// The likelihoods that functions/*_marginal.stan declare in this folder: USER_HEADER of a program.
#include "fm.hpp"
#include "hierarchical.hpp"
#include "matern.hpp"
