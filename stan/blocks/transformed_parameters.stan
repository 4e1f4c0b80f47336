// The prior of sigma_f is meant for the standard deviation of the function. A program whose k(x, x)
// is not sigma_f^2 divides sigma_f by the root mean of k(x, x) / sigma_f^2.
real mu = mu_location + mu_scale * z_mu;
real<lower=0> sigma_f = log_normal(z_sigma_f, sigma_f_location, sigma_f_scale);
real<lower=0> sigma_n = log_normal(noise_score(z_sigma_n, sigma_n_location, sigma_n_scale, N),
                                   sigma_n_location, sigma_n_scale);
vector<lower=0>[n_warp] warp = log_normal(z_warp, warp_location, warp_scale);
