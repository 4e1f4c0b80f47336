"""Encode and decode the search spaces of the YAHPO benchmark."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace

from slayr_py.space import Encoder, encoder_from_json, encoder_to_json, space_from_json

FOLDER = Path(__file__).resolve().parents[1] / "data" / "yahpo_spaces"
NAMES = [
    "iaml_glmnet",
    "iaml_ranger",
    "iaml_rpart",
    "iaml_super",
    "iaml_xgboost",
    "lcbench",
    "nb301",
    "rbv2_aknn",
    "rbv2_glmnet",
    "rbv2_ranger",
    "rbv2_rpart",
    "rbv2_super",
    "rbv2_svm",
    "rbv2_xgboost",
]

# The files have an older format, for which ConfigSpace warns about every parameter.
pytestmark = pytest.mark.filterwarnings("ignore:The field '(q|default|probabilities)':UserWarning")


@pytest.fixture(params=NAMES)
def real_space(request) -> ConfigurationSpace:
    return space_from_json(json.loads((FOLDER / f"{request.param}.config_space.json").read_text()))


def test_decode_inverts_encode(real_space):
    real_space.seed(3)
    encoder = Encoder(real_space)
    configs = real_space.sample_configuration(200)
    assert list(map(dict, encoder.decode(encoder.encode(configs)))) == list(map(dict, configs))


def test_activity_agrees_with_configspace(real_space):
    encoder = Encoder(real_space)
    genotype = encoder.from_uniform(np.random.default_rng(0).random((200, len(encoder.names))))
    encoded, allowed = encoder.resolve(genotype)
    assert allowed.all()
    for config, row in zip(encoder.decode(encoded), encoded.active, strict=True):
        config.check_valid_configuration()
        named = {name for name, on in zip(encoder.names, row, strict=True) if on}
        assert named == real_space.get_active_hyperparameters(config) & set(encoder.names)


def test_encoders_survive_json(real_space):
    encoder = Encoder(real_space)
    again = encoder_from_json(json.loads(json.dumps(encoder_to_json(encoder))))
    assert again.dimensions == encoder.dimensions and again.ancestors == encoder.ancestors
