/**
 * Coordinates in which the posterior of a quantity is equally wide where the data determine the
 * quantity and where they do not.
 *
 * Posteriors of length-scales and of the noise have two scales. The data do not determine a long
 * length-scale, which stays as uncertain as its prior; they determine the logarithm of a short one
 * to about 1 / sqrt(N). For the noise, large values are determined and small ones are not. A
 * sampler has one step size: if it suits one part, it is too small or too large for the other.
 * Therefore the programs sample a coordinate z, and narrow_below computes the standard-normal score
 * of the logarithm. Its slope is 1 / r far below the origin and 1 far above it. The prior of the
 * quantity is unchanged: the slope is the Jacobian in the density of z.
 *
 * r is the scale of the prior divided by the scale of the posterior of N observations. It is about
 * 1 for a narrow prior. The constants affect the speed of sampling but not the distribution that is
 * sampled; see docs/decisions/coordinates.md.
 */

/**
 * Score of a quantity whose posterior is narrow below the origin:
 *
 *   s(z) = origin + z / r + (1 - 1 / r) log(1 + exp(2 z)) / 2.
 *
 * @param z coordinates
 * @param origin scores at which the slope changes
 * @param ratio r
 * @return scores
 */
vector narrow_below(vector z, data vector origin, data vector ratio) {
  return origin + z ./ ratio + 0.5 * (1 - inv(ratio)) .* log1p_exp(2 * z);
}

/**
 * Density of coordinates whose scores s(z), see narrow_below, are standard normal:
 *
 *   sum_i (log N(s(z_i) | 0, 1) + log s'(z_i)),   s'(z) = 1 / r + (1 - 1 / r) / (1 + exp(-2 z)).
 *
 * @param z coordinates
 * @param origin, ratio see narrow_below
 * @param omit_jacobian 1: density of the scores instead. Its mode is the mode of the logarithms.
 * @return log density
 */
real narrow_below_lpdf(vector z, data vector origin, data vector ratio, data int omit_jacobian) {
  real density = std_normal_lpdf(narrow_below(z, origin, ratio));
  if (omit_jacobian) {
    return density;
  }
  return density + sum(log(inv(ratio) + (1 - inv(ratio)) .* inv_logit(2 * z)));
}

/**
 * Scales of the priors of length-scales divided by the scales of the posterior:
 *
 *   r_d = sqrt(1 + 0.13 N scale_d^2).
 *
 * The constant 0.13 is the information that one observation has about the logarithm of a short
 * length-scale, measured on test functions.
 *
 * @param scale scales of the priors of the logarithms; D
 * @param N number of observations
 * @return r; D
 */
vector lengthscale_ratio(data vector scale, data int N) {
  return sqrt(1 + 0.13 * N * square(scale));
}

/**
 * Score of a value of a log-normal quantity; 0 if the quantity is fixed, that is if the scale is 0:
 *
 *   (log(value) - location_i) / scale_i.
 *
 * @param value
 * @param location, scale log-normal distribution
 * @return scores
 */
vector score_of(data real value, data vector location, data vector scale) {
  vector[size(location)] score = rep_vector(0, size(location));
  for (i in 1 : size(location)) {
    if (scale[i] > 0) {
      score[i] = (log(value) - location[i]) / scale[i];
    }
  }
  return score;
}

/**
 * Scores of length-scales. The posterior is narrow below 1, the width of the unit cube: s is
 * narrow_below with
 *
 *   origin_d = -location_d / scale_d,   r_d = sqrt(1 + 0.13 N scale_d^2).
 *
 * @param z coordinates; D
 * @param location, scale priors of the logarithms; D
 * @param N number of observations
 * @return scores; D
 */
vector lengthscale_score(vector z, data vector location, data vector scale, data int N) {
  return narrow_below(z, score_of(1, location, scale), lengthscale_ratio(scale, N));
}

/**
 * Density of the coordinates of length-scales, with s of lengthscale_score and the correction g of
 * generalized_gamma:
 *
 *   sum_d (log N(s(z_d) | 0, 1) + log s'(z_d) + g(location_d + scale_d s(z_d))).
 *
 * @param z coordinates; D
 * @param location, scale, N see lengthscale_score
 * @param gamma other family, see generalized_gamma
 * @param omit_jacobian see narrow_below
 * @return log density
 */
real lengthscale_coordinate_lpdf(vector z, data vector location, data vector scale,
                                 data matrix gamma, data int N, data int omit_jacobian) {
  vector[size(z)] log_lengthscale = location + scale .* lengthscale_score(z, location, scale, N);
  return narrow_below_lpdf(z | score_of(1, location, scale), lengthscale_ratio(scale, N), omit_jacobian)
         + generalized_gamma(log_lengthscale, location, scale, gamma);
}

/**
 * Origin of the score of the noise, mirrored:
 *
 *   -(log(0.3) - location) / scale.
 *
 * The data determine a noise standard deviation above about 0.3, a tenth of the variance of
 * standardised targets. The posterior is narrow above the origin, so the score is the mirror image
 * of one that is narrow below it.
 *
 * @param location, scale prior of the logarithm
 * @return origin of the mirror image; 1
 */
vector noise_origin(data real location, data real scale) {
  return -score_of(0.3, [location]', [scale]');
}

/**
 * Scale of the prior of the noise divided by the scale of the posterior:
 *
 *   r = sqrt(1 + 0.5 N scale^2).
 *
 * One observation has up to 2 units of information about the logarithm, and 0.5 near the origin.
 *
 * @param scale scale of the prior of the logarithm
 * @param N number of observations
 * @return r; 1
 */
vector noise_ratio(data real scale, data int N) {
  return [sqrt(1 + 0.5 * N * square(scale))]';
}

/**
 * Score of the noise, with b of narrow_below at noise_origin and noise_ratio:
 *
 *   s(z) = -b(-z).
 *
 * @param z coordinate
 * @param location, scale prior of the logarithm
 * @param N number of observations
 * @return score
 */
real noise_score(real z, data real location, data real scale, data int N) {
  return -narrow_below([-z]', noise_origin(location, scale), noise_ratio(scale, N))[1];
}

/**
 * Density of the coordinate of the noise, with s of noise_score and the correction g of
 * generalized_gamma:
 *
 *   log N(s(z) | 0, 1) + log s'(z) + g(location + scale s(z)).
 *
 * @param z coordinate
 * @param location, scale, N see noise_score
 * @param gamma other family, see generalized_gamma
 * @param omit_jacobian see narrow_below
 * @return log density
 */
real noise_coordinate_lpdf(real z, data real location, data real scale, data row_vector gamma,
                           data int N, data int omit_jacobian) {
  real log_sigma_n = location + scale * noise_score(z, location, scale, N);
  return narrow_below_lpdf([-z]' | noise_origin(location, scale), noise_ratio(scale, N), omit_jacobian)
         + generalized_gamma([log_sigma_n]', [location]', [scale]', to_matrix(gamma));
}
