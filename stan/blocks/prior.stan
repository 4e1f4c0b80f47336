// Log prior density of the common coordinates, as in model.stan.
real log_prior = std_normal_lpdf(z_mu) + std_normal_lpdf(z_sigma_f) + std_normal_lpdf(z_warp)
                 + noise_coordinate_lpdf(z_sigma_n | sigma_n_location, sigma_n_scale, N, omit_jacobian)
                 + lengthscale_coordinate_lpdf(z_lengthscale | lengthscale_location, lengthscale_scale, N, omit_jacobian);
