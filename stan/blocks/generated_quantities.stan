// Outputs of every program; predictions.stan computes them.
vector[N_pointwise] log_lik; // log p(y_i | y_-i, hyperparameters)
vector[N_pointwise] y_rep; // replicate of y_i given y_-i; joint prior predictive draw if prior_only
vector[M] f_mean; // mean of the latent function at X_new, in units of T(y)
vector[M] f_sd; // standard deviation of the latent function at X_new
vector[want_density] log_density; // log posterior density of the coordinates, up to a constant
matrix[M_cov, M_cov] f_cov; // covariance of the latent function at X_new
