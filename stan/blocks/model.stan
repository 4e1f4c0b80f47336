z_mu ~ std_normal();
z_sigma_f ~ score(sigma_f_location, sigma_f_scale, sigma_f_gamma);
z_warp ~ score(warp_location, warp_scale, warp_gamma);
z_sigma_n ~ noise_coordinate(sigma_n_location, sigma_n_scale, sigma_n_gamma, N, omit_jacobian);
