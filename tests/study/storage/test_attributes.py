from __future__ import annotations

import networkx as nx

from slayr_py.kernels import Hierarchical, Matern
from slayr_py.space import Encoder
from slayr_py.study import StanGPSampler, ask, config_of, create_study
from slayr_py.study.distributions import to_params
from slayr_py.study.storage.attributes import STUDY_KEY, describe_kernel, model_difference


def test_changes_of_kernel_and_graphs_are_described(mixed):
    star = nx.star_graph(["m", "s", "l"])
    study = create_study(Encoder(mixed, graphs={"size": star}), n_initial=3)
    record = study.user_attrs[STUDY_KEY]
    assert model_difference(record, study.sampler.kernel_record, study.sampler.encoder) is None
    for space, kernel, words in (
        (mixed, "auto", "other graphs"),
        (Encoder(mixed, graphs={"size": star}), Hierarchical(base="rq"), "chosen because the space has conditions"),
    ):
        sampler = StanGPSampler(space, kernel=kernel)
        assert sampler.bind(study) == record["seed"]
        assert words in model_difference(record, sampler.kernel_record, sampler.encoder)
    assert study.user_attrs[STUDY_KEY] == record


def test_earlier_versions_recorded_the_kernel_by_name(plane):
    study = create_study(plane, n_initial=3, kernel=Matern(p=1), seed=1)
    record = {**study.user_attrs[STUDY_KEY], "kernel": "matern"}
    del record["graphs"]
    study.set_user_attr(STUDY_KEY, record)
    assert model_difference(record, study.sampler.kernel_record, study.sampler.encoder) is None
    assert describe_kernel(record["kernel"]) == "matern"
    assert config_of(ask(study)) == to_params(study.sampler.design(1)[0])
