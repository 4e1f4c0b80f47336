z_mu ~ std_normal();
z_sigma_f ~ std_normal();
z_warp ~ std_normal();
z_sigma_n ~ noise_coordinate(sigma_n_location, sigma_n_scale, N, omit_jacobian);
