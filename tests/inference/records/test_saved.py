"""Saved posteriors: both formats, replacement of an older posterior, and invalid or unsafe files."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from pathlib import Path

import pytest
import xarray as xr
from testing_fits import recorded_fit

import slayr_py as sl
from slayr_py.inference.records import saved
from slayr_py.processes import this_process

pytestmark = pytest.mark.stan

MOVED = {"record.json", "data.json", "posterior.nc", "posterior.zarr", "stack.json", "part_0", "part_1"}
FILES = {"netcdf": "posterior.nc", "zarr": "posterior.zarr"}


@pytest.fixture(scope="module")
def posterior(mixed_posterior):
    return mixed_posterior.with_prior(draws=30, chains=2, warmup=30)


@pytest.fixture(scope="module")
def in_zarr(posterior, tmp_path_factory):
    return posterior.save(tmp_path_factory.mktemp("zarr") / "fit", format="zarr")


@pytest.fixture(scope="module")
def small():
    """Two posteriors of one draw, whose trees are written in a few milliseconds."""
    return [recorded_fit("map", seed=seed) for seed in (1, 2)]


@pytest.mark.parametrize("form", FILES)
def test_every_group_is_read_back_bit_for_bit(posterior, tmp_path, form):
    folder = posterior.save(tmp_path / "fit", format=form)
    assert {path.name for path in folder.iterdir()} == {"data.json", "record.json", FILES[form]}
    again = sl.Posterior.load(folder)
    assert again.idata.identical(posterior.idata) and again.record == json.loads(json.dumps(posterior.record))
    assert {"prior", "prior_predictive", "sample_stats_prior"} < set(again.idata.children)
    for name, group in posterior.idata.children.items():
        for key, values in group.variables.items():
            read = again.idata[name].variables[key]
            assert read.dtype == values.dtype and read.values.tobytes() == values.values.tobytes(), (name, key)
    # xarray alone can read the files.
    with xr.open_datatree(folder / FILES[form]) as tree:
        assert tree.identical(posterior.idata)


def test_constraints_on_inputs_are_saved_but_for_functions(tmp_path):
    def is_small(config):
        return config["x"] <= 0.45

    def loaded(*within):
        encoder = sl.space.Encoder({"x": (0.0, 1.0), "y": (0.0, 1.0)}, within=["0.1 <= x + y <= 0.5", *within])
        fitted = sl.GaussianProcess(encoder).fit(
            [{"x": 0.1, "y": 0.1}, {"x": 0.4, "y": 0}], [1.0, 2.0], method="map", seed=1
        )
        found = sl.Posterior.load(fitted.save(tmp_path)).encoder
        assert found.within == encoder.within
        return found.inside(found.encode([{"x": 0.1, "y": 0.4}, {"x": 0.1, "y": 0.5}, {"x": 0.5, "y": 0}])).tolist()

    assert loaded() == [True, False, True]
    with pytest.warns(UserWarning, match=r"functions .* \(is_small\) are saved by name only: a search"):
        assert loaded(is_small) == [True, False, True]


@pytest.mark.parametrize("older", FILES)
@pytest.mark.parametrize("newer", FILES)
def test_a_folder_has_the_posterior_saved_last(small, tmp_path, older, newer):
    small[0].save(tmp_path, format=older)
    small[1].save(tmp_path, format=newer)
    assert {path.name for path in tmp_path.iterdir()} == {"data.json", "record.json", FILES[newer]}
    found = sl.Posterior.load(tmp_path).idata
    assert found.identical(small[1].idata) and not found.identical(small[0].idata)


@pytest.mark.parametrize("form", FILES)
def test_a_save_that_fails_leaves_the_older_posterior(small, tmp_path, monkeypatch, form):
    small[0].save(tmp_path, format="zarr")

    def full(*_, **__):
        raise OSError("no space left")

    monkeypatch.setattr(xr.DataTree, f"to_{form}", full)
    with pytest.raises(sl.StorageError, match="no space left"):
        small[1].save(tmp_path, format=form)
    assert sl.Posterior.load(tmp_path).idata.identical(small[0].idata)
    assert len(list(tmp_path.iterdir())) == 3


@pytest.fixture(scope="module")
def pairs(small):
    """An older posterior and a newer one: two fits, two stacks of them, and one of each."""
    stacks = [sl.Posterior.stack(fits, [0.3, 0.7]) for fits in (small, small[::-1])]
    mixed = [small[1], stacks[0]]
    return {"fit": small, "stack": stacks, "stack over fit": mixed, "fit over stack": mixed[::-1]}


@pytest.fixture(scope="module")
def copying(tmp_path_factory):
    """Return a function that makes a method write each tree once and then copy it: writing takes most of a save."""
    folder = tmp_path_factory.mktemp("trees")
    known = {}

    def copying(write):
        def copied(tree, path, **options):
            copy, _ = known.setdefault((write.__name__, id(tree)), (folder / str(len(known)), tree))
            if not copy.exists():
                write(tree, copy, **options)
            (shutil.copytree if copy.is_dir() else shutil.copy)(copy, path)

        return copied

    return copying


@pytest.fixture
def quick_trees(monkeypatch, copying):
    for name in ("to_netcdf", "to_zarr"):
        monkeypatch.setattr(xr.DataTree, name, copying(getattr(xr.DataTree, name)))


def broken_off(monkeypatch, newer, folder, form, at, killed):
    """Save, but fail at a move, or leave what a process leaves that is killed there; return whether it came so far."""
    moves = []

    def move(source, target):
        if Path(target).name in MOVED and "part_" not in str(Path(source).parent):
            moves.append(target)
            if len(moves) == at:  # what is moved back comes later
                raise OSError("the device is gone")
        os.rename(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(saved.os, "replace", move)
        if killed:
            patch.setattr(saved, "_move_back", lambda *_: None)
        try:
            newer.save(folder, format=form)
        except sl.StorageError:
            return True
    return False


def hashes(posterior):
    return [fit.record["draws_sha256"] for fit in (posterior.posteriors if posterior.is_stack else [posterior])]


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize(
    ("kind", "form"),
    [("fit", "netcdf"), ("fit", "zarr"), *[(kind, "netcdf") for kind in ("stack", "stack over fit", "fit over stack")]],
)
@pytest.mark.usefixtures("quick_trees")
def test_a_save_that_breaks_off_leaves_the_older_posterior_or_none(pairs, tmp_path, monkeypatch, kind, form, killed):
    older, newer = pairs[kind]
    before = older.save(tmp_path / "before", format="zarr" if kind == "fit" else form)
    assert hashes(sl.Posterior.load(before)) == hashes(older)
    for at in range(1, 8):
        folder = shutil.copytree(before, tmp_path / str(at))
        assert broken_off(monkeypatch, newer, folder, form, at, killed) == (at < 7)
        if killed and 1 < at < 7:
            with pytest.raises(sl.StorageError, match="not a readable saved"):
                sl.Posterior.load(folder)
        elif at < 7:
            assert contents(folder) == contents(before)
        else:
            assert hashes(sl.Posterior.load(folder)) == hashes(newer)


def test_nothing_of_a_replaced_posterior_or_stack_remains(small, tmp_path):
    (tmp_path / "part_list").mkdir()  # not of a posterior
    small[0].save(tmp_path, format="zarr")
    for stack in (sl.Posterior.stack(fits, [1 / len(fits)] * len(fits)) for fits in ([*small, small[0]], small)):
        stack.save(tmp_path)
    names = {"stack.json", "part_0", "part_1", "part_list"}
    assert {path.name for path in tmp_path.iterdir()} == names
    small[1].save(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"record.json", "data.json", "posterior.nc", "part_list"}


def test_folders_beside_a_posterior_are_kept_whatever_their_names(small, tmp_path):
    fit, stack = small[0], sl.Posterior.stack(small, [0.3, 0.7])
    own = ["part_a", "part_time", "part_0", "part_2"]
    for name in own:
        fit.save(tmp_path / name)
    fit.save(tmp_path)
    own.remove("part_0")  # now of the stack
    for posterior in (stack, fit):
        posterior.save(tmp_path)
        for name in own:
            assert hashes(sl.Posterior.load(tmp_path / name)) == hashes(fit)
    assert {path.name for path in tmp_path.iterdir()} == {"record.json", "data.json", "posterior.nc", *own}


def test_a_killed_save_over_a_stack_beside_an_older_fit_does_not_bring_back_the_fit(pairs, tmp_path, monkeypatch):
    fit, stack = pairs["stack over fit"]
    before = fit.save(tmp_path / "before")
    for path in stack.save(tmp_path / "stack").iterdir():  # as versions did that kept the files of the fit
        path.rename(before / path.name)
    for at in (2, 3):
        folder = shutil.copytree(before, tmp_path / str(at))
        assert broken_off(monkeypatch, stack, folder, "netcdf", at, killed=True)
    assert hashes(sl.Posterior.load(tmp_path / "2")) == hashes(stack)  # without the record, it is still a stack
    with pytest.raises(sl.StorageError, match="not a readable saved"):
        sl.Posterior.load(tmp_path / "3")


def test_data_of_another_posterior_are_refused(small, tmp_path):
    file = small[0].save(tmp_path) / "data.json"
    data = json.loads(file.read_text())
    data["y"][0] += 1.0
    file.write_text(json.dumps(data))
    with pytest.raises(sl.StorageError, match="its data.json does not belong to its record.json"):
        sl.Posterior.load(tmp_path)


def test_the_files_of_a_killed_save_are_removed_by_the_next(mixed_posterior, tmp_path):
    gone = tmp_path / f".slayr-save-{this_process()._replace(started=1)}-x"
    gone.mkdir()
    (gone / "data.json").write_text("{")
    mixed_posterior.save(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"data.json", "record.json", "posterior.nc"}


@pytest.mark.parametrize("where", ["older", ""])
def test_the_parts_that_a_killed_save_of_a_stack_leaves_are_removed_by_the_next(pairs, tmp_path, where):
    fit, stack = pairs["stack over fit"]
    stack.save(tmp_path)
    gone = tmp_path / f".slayr-save-{this_process()._replace(started=1)}-x"
    (gone / "older").mkdir(parents=True)
    (tmp_path / "stack.json").rename(gone / where / "stack.json")
    fit.save(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"data.json", "record.json", "posterior.nc"}


def test_an_unknown_format(posterior, tmp_path):
    with pytest.raises(sl.DataError, match="unknown format 'zar'.*'zarr'"):
        posterior.save(tmp_path, format="zar")


def test_without_zarr_the_error_names_the_extra(posterior, in_zarr, tmp_path, monkeypatch):
    monkeypatch.setattr(saved, "find_spec", lambda name: None)
    for call in (lambda: posterior.save(tmp_path, format="zarr"), lambda: sl.Posterior.load(in_zarr)):
        with pytest.raises(sl.StorageError, match=r"pip install 'slayr-py\[zarr\]'"):
            call()


class Bomb:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def decoded_by_a_pickle(tree, trace, **about):
    """Replace numbers by a pickle, and describe them so that reading would unpickle it."""
    array = tree / "posterior" / "mu"
    (array / ".zarray").write_text(json.dumps(json.loads((array / ".zarray").read_text()) | about))
    (array / "0.0").write_bytes(pickle.dumps(Bomb(trace)))


def pickled(tree, trace):
    decoded_by_a_pickle(tree, trace, dtype="|O", filters=[{"id": "pickle", "protocol": 5}], compressor=None)


def filtered(tree, trace):
    decoded_by_a_pickle(tree, trace, filters=[{"id": "pickle", "protocol": 5}], compressor=None)


def compressed(tree, trace):
    decoded_by_a_pickle(tree, trace, compressor={"id": "pickle", "protocol": 5})


def of_another_version(tree, trace):
    (tree / "posterior" / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')


def linked(tree, trace):
    (tree / "posterior" / "mu" / "0.0").unlink()
    (tree / "posterior" / "mu" / "0.0").symlink_to("/etc/passwd")


def truncated(tree, trace):
    chunk = tree / "posterior" / "mu" / "0.0"
    chunk.write_bytes(chunk.read_bytes()[:20])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (pickled, "'mu' has type '|O'"),
        (filtered, "'mu' has an unsupported filter or compressor"),
        (compressed, "'mu' has an unsupported filter or compressor"),
        (of_another_version, "version 3"),
        (linked, "neither a file nor a folder"),
        (truncated, "RuntimeError"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_arrays_other_than_plain_numbers_or_texts_are_rejected(in_zarr, tmp_path, change, said):
    folder = shutil.copytree(in_zarr, tmp_path / "fit")
    trace = tmp_path / "trace"
    change(folder / "posterior.zarr", trace)
    with pytest.raises(sl.StorageError, match="not a readable saved posterior") as caught:
        sl.Posterior.load(folder)
    assert said in str(caught.value) and not trace.exists()


def test_a_folder_with_two_trees_is_rejected(posterior, in_zarr, tmp_path):
    folder = posterior.save(tmp_path)
    shutil.copytree(in_zarr / "posterior.zarr", folder / "posterior.zarr")
    with pytest.raises(sl.StorageError, match=r"posterior.nc and posterior.zarr"):
        sl.Posterior.load(folder)


def test_errors_of_loading_and_saving(tmp_path, mixed_posterior):
    with pytest.raises(sl.StorageError, match="nowhere"):
        sl.Posterior.load(tmp_path / "nowhere")
    (tmp_path / "record.json").write_text("{}")
    with pytest.raises(sl.StorageError, match="not a readable saved posterior"):
        sl.Posterior.load(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(sl.StorageError, match="cannot save"):
        mixed_posterior.save(tmp_path / "file")
