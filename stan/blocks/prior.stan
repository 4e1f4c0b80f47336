// Log prior density of the common coordinates, as in model.stan.
real log_prior = std_normal_lpdf(z_mu)
                 + score_lpdf(z_sigma_f | sigma_f_location, sigma_f_scale, sigma_f_gamma)
                 + score_lpdf(z_warp | warp_location, warp_scale, warp_gamma)
                 + noise_coordinate_lpdf(z_sigma_n | sigma_n_location, sigma_n_scale, sigma_n_gamma, N, omit_jacobian)
                 + lengthscale_coordinate_lpdf(z_lengthscale | lengthscale_location, lengthscale_scale, lengthscale_gamma, N, omit_jacobian);
