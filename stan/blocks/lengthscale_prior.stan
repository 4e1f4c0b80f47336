vector[D] lengthscale_location; // lengthscale ~ LogNormal(location, scale)
vector<lower=0>[D] lengthscale_scale;
matrix[D, 3] lengthscale_gamma;
