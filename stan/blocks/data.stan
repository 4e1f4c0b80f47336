// Data of every program. The program declares the inputs X and X_new.
int<lower=0> N; // observations
int<lower=0> D; // columns of the inputs
vector[N] y; // targets, standardised; if binary, 1 for a success and -1 for a failure
vector<lower=0>[N] y_sd; // known standard deviations of the errors of y, besides sigma_n; 0 under a warp, or if binary
real<lower=0> noise_floor; // added to sigma_n^2 as a square; in units of T(y)
int<lower=0, upper=1> binary; // 1: probit likelihood
int<lower=0> M; // new points

int<lower=0, upper=1> want_cov; // 1: also compute f_cov
int<lower=0, upper=1> prior_only; // 1: skip the likelihood
int<lower=0, upper=1> omit_jacobian; // 1: omit the Jacobian of the coordinates, for a mode
int<lower=0, upper=1> want_pointwise; // 1: also compute log_lik and y_rep
int<lower=0, upper=1> want_density; // 1: also compute log_density
int<lower=0, upper=1> n_warp; // 1: sample the warp of the targets; 0: T is the identity
int<lower=0, upper=n_warp> n_pivot; // 1: the warp acts above the pivot, 0: above and below the mean

// Priors of positive hyperparameters: LogNormal(location, scale), unless gamma has another family, see
// generalized_gamma. A scale of 0 fixes the hyperparameter.
real mu_location; // mu ~ Normal(location, scale), in units of T(y)
real<lower=0> mu_scale;
real sigma_f_location; // signal sd ~ LogNormal(location, scale)
real<lower=0> sigma_f_scale;
row_vector[3] sigma_f_gamma;
real sigma_n_location; // sigma_n ~ LogNormal(location, scale)
real<lower=0> sigma_n_scale;
row_vector[3] sigma_n_gamma;
vector<upper=0>[n_pivot] warp_pivot; // best target, or another value below the mean
vector[n_warp] warp_location; // warp ~ LogNormal(location, scale)
vector<lower=0>[n_warp] warp_scale;
matrix[n_warp, 3] warp_gamma;
