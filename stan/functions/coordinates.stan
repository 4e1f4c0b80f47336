/**
 * Coordinates in which a quantity is as wide where the data determine it as
 * where they leave it to its prior.
 *
 * Posteriors of length-scales and of the noise have two scales. A long
 * length-scale is not seen by the data and is as uncertain as its prior; of a
 * short one the data determine the logarithm to about 1 / sqrt(N). With the
 * noise it is the other way round. A sampler has one step size: it creeps
 * through the one part or misses the other. So the programs sample z, and
 *
 *   score(z) = origin + z / r + (1 - 1 / r) log(1 + exp(2 z)) / 2,
 *
 * which rises by 1 / r far below the origin and by 1 far above it, is the
 * standard-normal score of the logarithm. The prior stays what it is: the
 * density of z has the slope of the score as its Jacobian.
 *
 * r is the scale of the prior over that of the posterior of N observations,
 * and 1 under a prior that is narrow already. The constants decide how fast
 * the programs sample, not what; see docs/decisions/coordinates.md.
 */

/**
 * Score of a quantity that is narrow below its origin; see above.
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
 * Density of coordinates whose scores are standard normal.
 *
 * @param z coordinates
 * @param origin, ratio see narrow_below
 * @param of_scores 1: the density of the scores themselves, whose mode is
 *   that of the logarithms
 * @return log density
 */
real narrow_below_lpdf(vector z, data vector origin, data vector ratio,
                       data int of_scores) {
  real density = std_normal_lpdf(narrow_below(z, origin, ratio));
  if (of_scores) {
    return density;
  }
  return density
         + sum(log(inv(ratio) + (1 - inv(ratio)) .* inv_logit(2 * z)));
}

/**
 * Scales of the priors of length-scales over those of the posterior. One
 * observation tells 0.13 units of information of the logarithm of a short
 * length-scale: measured on test functions.
 *
 * @param scale of the priors of the logarithms; D
 * @param N number of observations
 * @return r; D
 */
vector lengthscale_ratio(data vector scale, data int N) {
  return sqrt(1 + 0.13 * N * square(scale));
}

/**
 * Scores of length-scales: narrow below 1, the width of the unit cube.
 *
 * @param z coordinates; D
 * @param location, scale of the priors of the logarithms; D
 * @param N number of observations
 * @return scores; D
 */
vector lengthscale_score(vector z, data vector location, data vector scale,
                         data int N) {
  return narrow_below(z, -location ./ scale, lengthscale_ratio(scale, N));
}

/**
 * Density of the coordinates of length-scales.
 */
real lengthscale_coordinate_lpdf(vector z, data vector location,
                                 data vector scale, data int N,
                                 data int of_scores) {
  return narrow_below_lpdf(z | -location ./ scale, lengthscale_ratio(scale,
                                                                    N), of_scores);
}

/**
 * Where the noise turns from unseen to seen: at 0.3, a tenth of the variance
 * of standardised targets. Its coordinate is the mirror image of one that is
 * narrow below.
 *
 * @param location, scale of the prior of the logarithm
 * @return origin of the mirror image; 1
 */
vector noise_origin(data real location, data real scale) {
  return [(location - log(0.3)) / scale]';
}

/**
 * Scale of the prior of the noise over that of the posterior. One observation
 * tells up to 2 units of information of its logarithm, 0.5 where it is about
 * to be seen.
 *
 * @param scale of the prior of the logarithm
 * @param N number of observations
 * @return r; 1
 */
vector noise_ratio(data real scale, data int N) {
  return [sqrt(1 + 0.5 * N * square(scale))]';
}

/**
 * Score of the noise.
 *
 * @param z coordinate
 * @param location, scale of the prior of the logarithm
 * @param N number of observations
 * @return score
 */
real noise_score(real z, data real location, data real scale, data int N) {
  return -narrow_below([-z]', noise_origin(location, scale),
                       noise_ratio(scale, N))[1];
}

/**
 * Density of the coordinate of the noise.
 */
real noise_coordinate_lpdf(real z, data real location, data real scale,
                           data int N, data int of_scores) {
  return narrow_below_lpdf([-z]' | noise_origin(location, scale), noise_ratio(scale,
                                                                    N), of_scores);
}
