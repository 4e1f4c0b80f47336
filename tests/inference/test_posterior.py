"""Methods of a posterior: saving and loading, leave-one-out, and their errors."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from testing_spaces import mixed_space

import slayr_py as sl
from slayr_py.inference.records.contents import Contents
from slayr_py.toolchain import program_folder, stan_code


@pytest.mark.stan
def test_user_graphs_survive_saving(tmp_path):
    space = mixed_space()
    graphs = {"layers": "path", "act": nx.Graph([("relu", "tanh", {"weight": 2.0}), ("tanh", "gelu")])}
    encoder = sl.space.Encoder(space, graphs=graphs)
    configs = encoder.sobol(8, 1)
    post = sl.GaussianProcess(encoder).fit(configs, np.arange(8.0), method="map", seed=1)
    again = sl.Posterior.load(post.save(tmp_path / "fit"))
    assert again.encoder.graph_names == ("act", "layers", "size")
    np.testing.assert_array_equal(again.predict(configs).draw_mean, post.predict(configs).draw_mean)


def test_joint_draws_are_reproducible(branin_posterior):
    new = branin_posterior.encoder.sobol(4, 8)
    values = branin_posterior.sample(new, 50)
    assert values.shape == (50, 4) and values.dtype == np.float64
    np.testing.assert_array_equal(branin_posterior.sample(new, 50, seed=1), values)
    for wrong in ({"n": 0}, {"n": 2.5}, {"seed": -1}):
        with pytest.raises(sl.DataError, match="must be an integer"):
            branin_posterior.sample(new, **wrong)


def test_unknown_engine(mixed_posterior):
    with pytest.raises(sl.DataError, match="unknown engine 'torch'"):
        mixed_posterior.predict(mixed_posterior.train, engine="torch")


@pytest.mark.stan
def test_chains_cannot_start_at_a_mode(branin_data):
    space, configs, y = branin_data
    gp = sl.GaussianProcess(space)
    start = gp.fit(configs, y, method="map").warm_start()
    for chains in (1, 4):
        with pytest.raises(sl.DataError, match=f"for 0 chains; this model with {chains} chains needs"):
            gp.fit(configs, y, start=start, chains=chains)
    with pytest.raises(sl.DataError, match="laplace fit has no chains"):
        gp.fit(configs, y, method="laplace", draws=50, retries=0).warm_start()


def test_a_short_description_has_medians_and_intervals(mixed_posterior):
    lines = repr(mixed_posterior).splitlines()
    assert lines[0] == f"Posterior of a Gaussian process: {mixed_posterior.kernel.description}, 12 observations"
    assert lines[1].startswith(f"nuts, 200 draws: {mixed_posterior.check()} ")
    header = lines.index(next(line for line in lines if "median" in line))
    assert lines[header].split() == ["hyperparameter", "median", "5%", "95%"]
    shown = {row[0]: [float(number) for number in row[1:]] for row in map(str.split, lines[header + 1 :])}
    draws = mixed_posterior.draws["beta"][:, mixed_posterior.encoder.graph_names.index("act")]
    np.testing.assert_allclose(shown["beta[act]"], np.quantile(draws, [0.5, 0.05, 0.95]), rtol=1e-5)
    np.testing.assert_allclose(shown["sigma_n"][0], np.median(mixed_posterior.draws["sigma_n"]), rtol=1e-5)
    assert "<td>beta[act]</td>" in mixed_posterior._repr_html_()


@pytest.mark.stan
def test_labelled_groups_are_built_when_they_are_first_used(branin_data):
    space, configs, y = branin_data
    fit = sl.GaussianProcess(space).fit(configs, y, method="laplace", chains=2, draws=20, seed=1, pointwise=False)
    contents = fit.parts[0].contents
    assert fit.predict(configs[:2]).mean.shape == (2,) and fit.n_draws == 40 and repr(fit)
    assert "tree" not in vars(contents)
    stored = Contents.of_tree(fit.model, fit.idata)
    assert {name: values.tolist() for name, values in stored.draws.items()} == {
        name: values.tolist() for name, values in contents.draws.items()
    }
    for name, values in contents.coordinates.items():
        np.testing.assert_array_equal(stored.coordinates[name], values)
    assert (stored.n_chains, stored.y_mean, stored.y_sd) == (contents.n_chains, contents.y_mean, contents.y_sd)


@pytest.mark.parametrize(
    ("method", "noted"), [("laplace", True), ("pathfinder", True), ("carried", False), ("nuts", False)]
)
def test_a_note_says_that_chains_replace_an_approximation(mixed_posterior, method, noted):
    attempt = {"method": method, "start": None, "why": ["Pareto k 0.9"], "then": "a cold start", "seconds": 1.0}
    part = mixed_posterior.only("record").after([attempt])
    notes = sl.Posterior.of(part).check().notes
    assert any(f"method={method!r} was given up" in note and "method='nuts'" in note for note in notes) == noted
    assert part.record["abandoned"] == [attempt]
    assert part.record["diagnostics"]["kernel_notes"] == list(part.diagnostics.kernel_notes)


def test_the_program_of_a_fit_is_that_of_its_kernel(branin_posterior, tmp_path):
    file = tmp_path / "matern_gp.stan"
    file.write_text(branin_posterior.stan_code)
    folder = program_folder()
    assert "#include" not in file.read_text()
    assert stan_code(file, ()) == stan_code(folder / "matern_gp.stan", (folder,))
    with pytest.raises(sl.DataError, match="several parts|stack"):
        _ = sl.Posterior.stack([branin_posterior, branin_posterior], [0.5, 0.5]).stan_code
