r"""Graph Fourier analysis of discrete parameters, shared by all kernels on graphs.

With the Laplacian's eigenvalues lambda and eigenvectors u of one graph, a kernel on its vertices is

    k(v, v') = sum_i u_i[v] u_i[v'] f(lambda_i) = sum_g W_g(v, v') f(lambda_g),

where W_g sums the products over equal eigenvalues (Oh, Gavves & Welling 2021, eq. 1; Smola & Kondor 2003).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.optimize import brentq

from slayr_py.kernels.contracts import StanValue
from slayr_py.kernels.hyperparameters import Hyperparameter
from slayr_py.kernels.priors import LogNormal
from slayr_py.space import Encoded, FloatArray, Layout


def vertex_weights(a: Encoded, b: Encoded) -> Iterator[tuple[FloatArray, list[FloatArray]]]:
    """Yield the distinct eigenvalues (G,) of every graph, and G arrays W_g(v_a, v_b) of shape (n_a, n_b)."""
    for position, spectrum in enumerate(a.encoder.spectra.values()):
        u_a = spectrum.basis[a.vertices[:, position]]
        u_b = spectrum.basis[b.vertices[:, position]]
        groups = [spectrum.group_of == g for g in range(len(spectrum.eigenvalues))]
        yield spectrum.eigenvalues, [u_a[:, group] @ u_b[:, group].T for group in groups]


def own_weights(a: Encoded) -> Iterator[tuple[FloatArray, list[FloatArray]]]:
    """Yield the distinct eigenvalues (G,) of every graph, and G arrays W_g(v_a, v_a) of shape (n_a,)."""
    for position, spectrum in enumerate(a.encoder.spectra.values()):
        squares = np.square(spectrum.basis[a.vertices[:, position]])
        groups = [spectrum.group_of == g for g in range(len(spectrum.eigenvalues))]
        yield spectrum.eigenvalues, [squares[:, group].sum(axis=1) for group in groups]


def graph_data(train: Encoded, new: Encoded) -> dict[str, StanValue]:
    """Return real inputs and spectra as entries of the data of ``stan/fm_gp.stan``; graphs side by side."""
    spectra = list(train.encoder.spectra.values())
    starts = np.cumsum([0, *(len(s.eigenvalues) for s in spectra)])
    group_of = [s.group_of + start + 1 for s, start in zip(spectra, starts[:-1], strict=True)]

    def eigenvectors(points: Encoded) -> FloatArray:
        rows = [s.basis[points.vertices[:, p]] for p, s in enumerate(spectra)]
        return np.ascontiguousarray(np.hstack([np.zeros((len(points), 0)), *rows]))

    return {
        "N": len(train),
        "D": train.real.shape[1],
        "X": train.real,
        "active": train.real_active.astype(np.float64),
        "P": len(spectra),
        "G": int(starts[-1]),
        "Q": sum(len(s.group_of) for s in spectra),
        "lambda": np.concatenate([np.zeros(0), *(s.eigenvalues for s in spectra)]),
        "graph_of": np.repeat(np.arange(len(spectra)) + 1, np.diff(starts)),
        "group_of": np.concatenate([np.zeros(0, dtype=np.int64), *group_of]),
        "U": eigenvectors(train),
        "M": len(new),
        "X_new": new.real,
        "active_new": new.real_active.astype(np.float64),
        "U_new": eigenvectors(new),
    }


_FEW_GRAPHS = 5  # whose levels correlate 1/2 at the prior median; less of the correlation is lost on each of more


def damping(encoder: Layout, response: Callable[[FloatArray], FloatArray]) -> Hyperparameter:
    """Return ``beta`` of every graph; at its prior median two levels correlate 1/2 on average, more with many graphs.

    At equal continuous parameters the entries of U f(beta Lambda) U' add up to m f(0), and its diagonal adds up to
    S = sum_i f(beta lambda_i). The mean correlation of m vertices is thus (m f(0) - S) / ((m - 1) S). On a complete
    graph with f = 1 / (1 + beta lambda) it is beta / (1 + beta). The scale 1.5 makes the correlation about uniform.

    With P > 5 graphs the correlation at the median is 1 - 5 / (2 P): a function of 20 categories, each of which halves
    the correlation, would be white noise under the prior. Length-scales grow with the dimension for the same reason.

    Parameters
    ----------
    response : callable
        f at equal continuous parameters, as a function of beta lambda.
    """
    counts = [np.bincount(spectrum.group_of).astype(np.float64) for spectrum in encoder.spectra.values()]
    several = [count.sum() > 1 for count in counts]
    correlation = 1 - 0.5 * _FEW_GRAPHS / max(sum(several), _FEW_GRAPHS)
    locations = []
    for spectrum, count, has_several in zip(encoder.spectra.values(), counts, several, strict=True):

        def excess(log_beta: float, count: FloatArray = count, of: FloatArray = spectrum.eigenvalues) -> float:
            f = response(np.exp(log_beta) * of)
            m = count.sum()
            return float((f @ count) / f[0] * (1 + (m - 1) * correlation) / m - 1)

        locations.append(float(brentq(excess, -40.0, 40.0)) if has_several else 0.0)
    return Hyperparameter("beta", LogNormal(locations, 1.5), encoder.graph_names, "graph", may_vanish=True)
