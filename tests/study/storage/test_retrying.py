"""A database that fails for a while costs time and nothing else, whichever operation it fails in."""

from __future__ import annotations

import contextlib
import re
import shutil
import warnings

import optuna
import pytest
import sqlalchemy
from optuna.exceptions import StorageInternalError
from optuna.storages import JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from testing_databases import new_database, postgresql_server, restarted
from testing_studies import bowl

from slayr_py.errors import StorageError
from slayr_py.study import create_study, minimize
from slayr_py.study.storage import optuna_private, retrying

ARGUMENTS = {"n_initial": 4, "seed": 3, "study_name": "s", "progress": False}


class Outage:
    """Let the transactions of all databases fail, from one of them on, before or after it is committed."""

    def __init__(self, first: int, length: int, committed: bool) -> None:
        self.first = first
        self.length = length
        self.committed = committed
        self.count = 0

    @contextlib.contextmanager
    def session(self, scoped, ignore_integrity_error=False):
        self.count += 1
        fails = self.first <= self.count < self.first + self.length
        if fails and not self.committed:
            raise StorageInternalError("server closed the connection unexpectedly")
        with once(scoped, ignore_integrity_error) as session:
            yield session
        if fails:
            raise StorageInternalError("server closed the connection unexpectedly")


once = optuna.storages._rdb.storage._create_scoped_session


@pytest.fixture
def no_waits_of_optuna(monkeypatch):
    """Let Optuna repeat at once what fails when a trial starts; by default it waits a second, four times."""
    monkeypatch.setattr(optuna.storages._rdb.storage.random, "random", lambda: 0.0)


@pytest.fixture
def outage(monkeypatch, no_waits_of_optuna):
    monkeypatch.setattr(retrying, "FIRST_WAIT", 0.0)

    def start(first: int, length: int = 2, committed: bool = False) -> Outage:
        made = Outage(first, length, committed)
        monkeypatch.setattr(optuna.storages._rdb.storage, "_create_scoped_session", made.session)
        return made

    return start


@pytest.mark.parametrize("committed", [False, True])
def test_an_outage_at_any_moment_of_a_run_changes_nothing(plane, tmp_path, outage, committed):
    def run(name):
        return minimize(bowl, plane, 2, storage=f"sqlite:///{tmp_path / name}.db", **ARGUMENTS).trials

    counter = outage(10**9)
    undisturbed = run("undisturbed")
    opened = 8  # transactions that open the storage and create the study
    for first in range(opened + committed, counter.count, 17):
        outage(first, committed=committed)
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", "the study's storage fails .*trying again for 300 seconds", RuntimeWarning
            )
            trials = run(f"{first}")
        # A trial whose creation was not confirmed is created again; what is left over belongs to a longer run.
        done = trials[trials["state"] == "COMPLETE"]
        assert done.equals(undisturbed) and (committed or len(trials) == 2), first
        assert set(trials["state"][2:]) <= {"RUNNING"}


def test_an_outage_is_reported_while_it_is_waited_for(plane, tmp_path, outage):
    study = create_study(plane, storage=f"sqlite:///{tmp_path / 's.db'}", n_initial=2, study_name="s")
    outage(1)
    with pytest.warns(RuntimeWarning, match=r"storage fails \(server closed the connection unexpectedly\): trying"):
        study.set_user_attr("mine", 1)
    assert study.user_attrs["mine"] == 1


def test_optunas_own_loop_survives_an_outage_when_the_objective_returns(plane, tmp_path, outage):
    study = create_study(plane, storage=f"sqlite:///{tmp_path / 's.db'}", n_initial=4, study_name="s")

    def objective(trial):
        value = trial.suggest_float("x", -5.0, 10.0) + trial.suggest_float("y", 0.0, 15.0)
        outage(1, length=4)
        return value

    with pytest.warns(RuntimeWarning, match="trying again"):
        study.optimize(objective, n_trials=1)
    assert study.trials[0].state.name == "COMPLETE"


@pytest.mark.parametrize("n_parallel", [1, 2])
def test_an_outage_that_lasts_names_the_values_and_they_can_be_told_later(
    plane, tmp_path, outage, monkeypatch, n_parallel
):
    monkeypatch.setattr(retrying, "PATIENCE", 0.0)
    url = f"sqlite:///{tmp_path / 's.db'}"
    calls = []

    def objective(config):
        calls.append(config)
        if len(calls) == 2:
            outage(1, length=10**9)
        return config["x"]

    with pytest.raises(StorageError, match="server closed the connection unexpectedly; .* except the value") as caught:
        minimize(objective, plane, 4, storage=url, n_parallel=n_parallel, **ARGUMENTS)
    assert isinstance(caught.value.__cause__, StorageInternalError)
    call = (
        r"study\.tell\((\d), (.*?), skip_if_finished=True\)"  # the server may have finished the trial before it failed
    )
    named = re.findall(rf"at (\{{.*?\}}): store it with Optuna's {call}", str(caught.value))
    monkeypatch.setattr(optuna.storages._rdb.storage, "_create_scoped_session", once)
    study = optuna.load_study(study_name="s", storage=url)
    for config, number, value in named:
        assert str(float(value)) in config
        study.tell(int(number), float(value), skip_if_finished=True)
    stored = [trial.value for trial in study.trials if trial.value is not None]
    assert sorted(stored) == sorted(config["x"] for config in calls)
    result = minimize(lambda config: config["x"], plane, 4, storage=url, **ARGUMENTS)
    assert result.trials["state"].tolist() == ["COMPLETE"] * 4


def test_a_run_that_has_given_up_waits_no_second_time(outage, tmp_path, monkeypatch):
    storage = optuna_private.DatabaseStorage(f"sqlite:///{tmp_path / 's.db'}")
    waits = []
    monkeypatch.setattr(retrying.time, "sleep", waits.append)
    monkeypatch.setattr(retrying.time, "monotonic", lambda: float(sum(waits)))
    monkeypatch.setattr(retrying, "FIRST_WAIT", 1.0)
    outage(1, length=10**9)
    with pytest.warns(RuntimeWarning), pytest.raises(StorageInternalError):
        storage.get_all_studies()
    assert max(waits) == retrying.LONGEST_WAIT and retrying.PATIENCE - 10 <= sum(waits) <= retrying.PATIENCE
    waited = len(waits)
    with pytest.raises(StorageInternalError):
        storage.get_all_studies()
    assert len(waits) == waited


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (sqlalchemy.exc.OperationalError("", {}, Exception("server closed the connection unexpectedly")), True),
        (sqlalchemy.exc.OperationalError("", {}, Exception("database is locked")), True),
        (sqlalchemy.exc.OperationalError("", {}, Exception("no such table: trials")), False),
        (sqlalchemy.exc.ProgrammingError("", {}, Exception("syntax error")), False),
        (sqlalchemy.exc.ProgrammingError("", {}, Exception("terminated"), connection_invalidated=True), True),
        (OSError("Stale file handle"), True),
        (StorageError("is damaged"), False),
        (ValueError("Cannot tell a COMPLETE trial"), False),
    ],
)
def test_only_errors_that_may_pass_are_waited_for(error, passes):
    wrapped = StorageInternalError()
    wrapped.__cause__ = error
    assert retrying.may_pass(error) is passes
    if isinstance(error, sqlalchemy.exc.SQLAlchemyError):
        assert retrying.may_pass(wrapped) is passes


def test_a_run_continues_after_postgresql_was_restarted(plane, tmp_path):
    with postgresql_server() as server:
        url = new_database(server)
        calls = []

        def objective(config):
            calls.append(config)
            if len(calls) == 2:
                restarted(server)  # pooled connections are stale now
            return bowl(config)

        trials = minimize(objective, plane, 4, storage=url, **ARGUMENTS).trials
    undisturbed = minimize(bowl, plane, 4, storage=f"sqlite:///{tmp_path / 's.db'}", **ARGUMENTS).trials
    assert len(calls) == 4 and trials.equals(undisturbed)


def test_every_operation_of_a_database_that_a_run_needs_is_repeated():
    interface = optuna.storages.BaseStorage.__abstractmethods__
    same = {name for name in interface if getattr(RDBStorage, name) is getattr(optuna_private.DatabaseStorage, name)}
    # Optuna's cache, which is in front of a database, calls private operations instead of two of them.
    assert same == {"delete_study", "create_new_trial", "set_trial_param"}


def journal(path):
    return JournalStorage(JournalFileBackend(str(path)))


@pytest.mark.parametrize(
    "opened", [lambda folder: f"sqlite:///{folder / 's.db'}", lambda folder: journal(folder / "s")]
)
@pytest.mark.parametrize("during", ["evaluation", "callback"])
def test_a_study_that_is_deleted_while_it_runs_ends_in_an_error_that_says_so(plane, tmp_path, opened, during):
    storage = opened(tmp_path)
    evaluated = []

    def delete(now: str) -> None:
        if now == during and len(evaluated) == 3:
            optuna.delete_study(study_name="s", storage=opened(tmp_path))

    def objective(config):
        evaluated.append(config)
        delete("evaluation")
        return bowl(config)

    with pytest.raises(StorageError, match="the study was deleted while it ran: run it again") as raised:
        minimize(objective, plane, 4, storage=storage, callbacks=[lambda *_: delete("callback")], **ARGUMENTS)
    assert len(evaluated) == 3
    assert "resume" not in str(raised.value)
    assert "study.tell" not in str(raised.value)
    # A journal still takes the values of trials whose study was deleted.
    lacks = during == "evaluation" and not isinstance(storage, JournalStorage)
    assert ("It lacked the value" in str(raised.value)) == lacks


@pytest.mark.parametrize("how", ["moved", "replaced"])
def test_a_file_that_is_moved_or_replaced_while_a_study_runs_has_to_be_put_back(plane, tmp_path, how):
    file = tmp_path / "s.db"

    def objective(config):
        other = tmp_path / "other.db"
        if how == "moved":
            file.rename(other)
        else:
            shutil.copy(file, other)
            other.rename(file)
        return 1.0

    lacks = r"replaced while the study ran; put it back\. It lacks the value 1\.0 of trial 0 .*study\.tell\(0, 1\.0, "
    with pytest.raises(StorageError, match=lacks) as raised:
        minimize(objective, plane, 2, storage=file, **ARGUMENTS)
    assert not re.search("Everything is stored|are kept|readonly", str(raised.value))
    if how == "moved":
        (tmp_path / "other.db").rename(file)
    optuna.load_study(study_name="s", storage=f"sqlite:///{file}").tell(0, 1.0, skip_if_finished=True)
    again = minimize(lambda config: 2.0, plane, 2, storage=file, **ARGUMENTS)
    assert again.trials["value"].tolist() == [1.0, 2.0]


@pytest.mark.usefixtures("no_waits_of_optuna")
def test_a_file_that_is_moved_when_every_value_is_stored_has_to_be_put_back(plane, tmp_path):
    def move(study, trial):
        (tmp_path / "s.db").rename(tmp_path / "other.db")

    with pytest.raises(StorageError, match="moved or replaced while the study ran; put it back and run the same study"):
        minimize(bowl, plane, 2, storage=tmp_path / "s.db", callbacks=[move], **ARGUMENTS)


class Failing:
    """An operation that fails a number of times."""

    def __init__(self, times: float) -> None:
        self.times = times

    def __call__(self) -> str:
        self.times -= 1
        if self.times >= 0:
            raise StorageInternalError("server closed the connection unexpectedly")
        return "answer"


def test_a_storage_that_answers_again_is_waited_for_again(monkeypatch):
    monkeypatch.setattr(retrying.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(retrying, "PATIENCE", 0.0)
    retries = retrying.Retries()
    with pytest.raises(StorageInternalError):
        retries(Failing(1))
    monkeypatch.setattr(retrying, "PATIENCE", 300.0)
    with pytest.raises(StorageInternalError):
        retries(Failing(1))
    assert retries(Failing(0)) == "answer"
    with pytest.warns(RuntimeWarning, match="trying again for 300 seconds") as caught:
        assert retries(Failing(3)) == "answer"
    assert len(caught) == 1


def test_an_interrupted_wait_is_not_begun_again(monkeypatch):
    waits = []

    def interrupt(seconds):
        waits.append(seconds)
        raise KeyboardInterrupt

    monkeypatch.setattr(retrying.time, "sleep", interrupt)
    retries = retrying.Retries()
    with pytest.warns(RuntimeWarning, match="trying again"), pytest.raises(KeyboardInterrupt):
        retries(Failing(9))
    with pytest.raises(StorageInternalError):
        retries(Failing(9))
    assert waits == [retrying.FIRST_WAIT]
