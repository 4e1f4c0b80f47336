"""The section [pretrain] of a configuration file."""

from __future__ import annotations

import numpy as np
import optuna
import pandas as pd
import pytest

from slayr_py.cli.config import load_config
from slayr_py.kernels import Matern, Pretrained
from slayr_py.study.storage.attributes import FIT_KEY

SECTION = '\n[pretrain]\ndata = "related.csv"\nmachine = "ridge"\nC = 10.0\nlengthscale = 0.5\n'


@pytest.fixture
def related(folder) -> pd.DataFrame:
    """24 related values beside a configuration, one of them outside the range of x."""
    x = np.append(np.linspace(0.0, 1.0, 23), 1.1)
    k = np.tile(["a", "b"], 12)
    table = pd.DataFrame({"note": "-", "x": x, "k": k, "value": (x - 0.25) ** 2 + 0.4 * (k == "b")})
    table.iloc[:-1].to_csv(folder / "related.csv", index=False)
    return table


def written(folder, section=SECTION, gp=""):
    path = folder / "pre.toml"
    path.write_text((folder / "bowl.toml").read_text() + gp + section)
    return path


def test_the_section_is_a_kernel_learned_from_the_table(folder, related, capsys):
    kernel = load_config(written(folder)).options["kernel"]
    assert isinstance(kernel, Pretrained) and kernel.columns == ("k[a]", "k[b]", "x")
    assert kernel.layers == (1, 2) and repr(kernel.base) == "Matern(p=2)" and len(kernel.alpha) == 23
    changed = SECTION + "layers = 2\nbase = false\norigin = { x = 0.25 }\n"
    kernel = load_config(written(folder, changed)).options["kernel"]
    assert kernel.layers == (2,) and kernel.base is None and kernel.origin == {"x": 0.25}
    kernel = load_config(written(folder, SECTION + "layers = [1]\np = 0\n")).options["kernel"]
    assert kernel.layers == (1,) and isinstance(kernel.base, Matern) and kernel.base.p == 0
    assert capsys.readouterr().err == ""
    related.iloc[:-1].rename(columns={"value": "error"}).to_csv(folder / "related.csv", index=False)
    tuned = '[pretrain]\ndata = "related.csv"\ncolumn = "error"\nmachine = "ridge"\n'
    assert load_config(written(folder, tuned)).options["kernel"].lengthscale > 0


def test_values_outside_the_space_are_clipped_on_request(folder, related, capsys):
    related.to_csv(folder / "related.csv", index=False)
    kernel = load_config(written(folder, SECTION + "clip = true\n")).options["kernel"]
    assert kernel.support[-1].tolist() == [0.0, 1.0, 1.0]
    assert "pre-training: 1 value outside the ranges of the space moved to the bounds" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("section", "words"),
    [
        (SECTION + "origine = 1\n", "unknown key 'origine' in [pretrain]; did you mean 'origin'?"),
        (SECTION + 'C = "x"\n'.replace("C", "epsilon"), "epsilon in [pretrain] must be an integer or a number"),
        ("[pretrain]\n", '[pretrain] needs data = "FILE.csv"'),
        ('[pretrain]\ndata = "none.csv"\n', "there is no table"),
        (SECTION + 'column = "valeu"\n', "related.csv has no column 'valeu'; did you mean 'value'?"),
        (SECTION + "layers = 3\n", "[pretrain]: layers is 3; use 0, 1, 2 or several of them"),
        (SECTION + 'base = "matern"\n', "base in [pretrain] must be true or false"),
        (SECTION + "degree = 2\n", "the se kernel takes no 'degree'"),
    ],
)
def test_wrong_sections_are_named(slayr, folder, related, section, words):
    code, _, err = slayr("optimize", written(folder, section), "-q")
    assert code == 2 and words in err and "Traceback" not in err


def test_a_kernel_in_gp_too_is_refused(slayr, folder, related):
    code, _, err = slayr("optimize", written(folder, gp='\n[gp]\nkernel = "matern"\n'), "-q")
    assert code == 2 and "[pretrain] and kernel in [gp] both define the kernel; remove one of them" in err


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t, "[pretrain]: configuration 23: parameter 'x' is 1.1; give a number from 0.0 to 1.0"),
        (lambda t: t.head(0), "related.csv has a header but no rows"),
        (lambda t: t.assign(value=np.where(t["x"] > 0.3, np.nan, 1.0)), "row 8 of related.csv has no value; remove"),
        (lambda t: t.head(9).assign(value=1.0), "[pretrain]: y is constant, 1: a kernel cannot be learned from it"),
    ],
)
def test_wrong_tables_are_named(slayr, folder, related, change, words):
    change(related).to_csv(folder / "related.csv", index=False)
    code, _, err = slayr("optimize", written(folder), "-q")
    assert code == 2 and words in err and "Traceback" not in err


@pytest.mark.stan
def test_optimize_inspect_and_replay(slayr, folder, related):
    path = written(folder, gp='\n[gp]\nmethod = "map"\n')
    code, out, err = slayr("optimize", path, "-q", "--budget", "5")
    assert code == 0 and "kernel      pre-trained kernel (one layer, two layers, base; 23 related points)" in out, err
    study = optuna.load_study(study_name="pre", storage="sqlite:///pre.db")
    assert study.trials[4].user_attrs[FIT_KEY]["kernel"].keys() == {"name", "sha256"}
    code, out, _ = slayr("inspect", "pre.db")
    assert code == 0 and "model, as of trial 4: share of the base kernel 0." in " ".join(out.split())
    code, out, err = slayr("replay", "pre.db", "--trial", "4")
    assert code == 0, out + err
    assert slayr("optimize", path, "-q", "--budget", "6")[0] == 0
