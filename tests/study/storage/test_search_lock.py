"""The search lock: one process at a time, in the order in which they came, on databases and journals."""

from __future__ import annotations

import threading
import time

import optuna
import pytest
from ConfigSpace import ConfigurationSpace
from optuna.storages import JournalStorage
from optuna.storages.journal import BaseJournalBackend, JournalFileBackend
from testing_processes import started

from slayr_py.processes import this_process
from slayr_py.study import ask, create_study
from slayr_py.study.storage import search_lock as search_lock_room
from slayr_py.study.storage.attributes import LOCK_KEY
from slayr_py.study.storage.search_lock import search_lock


def holders(storage: str | JournalStorage) -> list[int]:
    """Take the lock of the study "s" three times in each of three threads; return how many held it at each time."""
    inside = []
    most = []

    def work() -> None:
        study = optuna.load_study(study_name="s", storage=storage)
        for _ in range(3):
            with search_lock(study):
                inside.append(1)
                most.append(len(inside))
                time.sleep(0.01)
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return most


class TestSearchLock:
    def test_only_one_thread_holds_it(self, database, plane):
        study = create_study(plane, seed=1, storage=database, study_name="s")
        assert holders(database) == [1] * 9
        assert study._storage.get_study_system_attrs(study._study_id)[LOCK_KEY] == []

    def test_it_is_released_after_an_error(self, database, plane):
        study = create_study(plane, seed=1, storage=database, study_name="s")
        with pytest.raises(ZeroDivisionError), search_lock(study):
            raise ZeroDivisionError
        with search_lock(study):
            pass

    @pytest.mark.parametrize("holder", ["", ["nonsense", 7, "host-1"], 7])
    def test_it_is_free_without_a_valid_holder(self, plane, tmp_path, holder):
        study = create_study(plane, seed=1, storage=f"sqlite:///{tmp_path / 'study.db'}", study_name="s")
        study._storage.set_study_system_attr(study._study_id, LOCK_KEY, holder)
        with search_lock(study):
            pass

    def test_waiting_threads_get_it_in_the_order_in_which_they_came(self, database, plane):
        study = create_study(plane, seed=1, storage=database, study_name="s")
        served = []

        def work(number: int) -> None:
            with search_lock(optuna.load_study(study_name="s", storage=database)):
                served.append(number)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        with search_lock(study):
            for waiting, thread in enumerate(threads, start=2):
                thread.start()
                while len(study._storage.get_study_system_attrs(study._study_id)[LOCK_KEY]) < waiting:
                    time.sleep(0.005)
        for thread in threads:
            thread.join()
        assert served == list(range(6))

    def test_the_dead_leave_the_queue_at_once_and_another_machine_after_a_timeout(self, plane, tmp_path, monkeypatch):
        study = create_study(plane, seed=1, storage=f"sqlite:///{tmp_path / 'study.db'}", study_name="s")
        dead = f"{this_process()._replace(started=1)} x"
        elsewhere = f"{this_process()._replace(host='elsewhere')} x"
        monkeypatch.setattr(search_lock_room, "LONGEST_SILENCE", 0.1)
        for queue, longest_hold in (([f"{dead} holds", dead], 600.0), ([f"{elsewhere} holds", elsewhere], 0.3)):
            monkeypatch.setattr(search_lock_room, "LONGEST_HOLD", longest_hold)
            study._storage.set_study_system_attr(study._study_id, LOCK_KEY, queue)
            started = time.monotonic()
            with search_lock(study):
                assert time.monotonic() - started >= (0.4 if longest_hold < 1 else 0.0)

    def test_a_process_that_has_lost_its_place_joins_again(self, plane, tmp_path):
        study = create_study(plane, seed=1, storage=f"sqlite:///{tmp_path / 'study.db'}", study_name="s")
        holder = f"{this_process()} x holds"
        study._storage.set_study_system_attr(study._study_id, LOCK_KEY, [holder])
        served = []

        def work() -> None:
            with search_lock(study):
                served.append(1)

        thread = threading.Thread(target=work)
        thread.start()
        while len(study._storage.get_study_system_attrs(study._study_id)[LOCK_KEY]) < 2:
            time.sleep(0.005)
        study._storage.set_study_system_attr(study._study_id, LOCK_KEY, [])
        thread.join(timeout=60)
        assert served == [1] and study._storage.get_study_system_attrs(study._study_id)[LOCK_KEY] == []

    def test_a_study_in_memory_needs_none(self, plane):
        with search_lock(create_study(plane, seed=1)):
            pass


WITHOUT_FITS = """
import sys, time
from pathlib import Path
import optuna
from ConfigSpace import ConfigurationSpace
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from slayr_py.study import StanGPSampler, ask
from slayr_py.study.model import design
space = ConfigurationSpace({"a": [0, 1, 2, 3], "b": [0, 1, 2], "c": [0, 1]})
journal, me, other = sys.argv[1:]
unavailable = design.Design.unavailable
def slowly(self, study, trial, fixed):  # between reading what others evaluate and storing what is suggested
    known = unavailable(self, study, trial, fixed)
    time.sleep(0.1)
    return known
design.Design.unavailable = slowly
design.as_stan_seed = lambda stream: 7  # both want the same configuration next, all the time
storage = JournalStorage(JournalFileBackend(journal))
study = optuna.load_study(study_name="shared", storage=storage, sampler=StanGPSampler(space, n_initial=1))
Path(me).touch()
while not Path(other).exists():
    time.sleep(0.01)
for _ in range(6):
    study.tell(ask(study), state=optuna.trial.TrialState.FAIL)
"""


class TestJournal:
    @pytest.fixture
    def journal(self, tmp_path) -> JournalStorage:
        return JournalStorage(JournalFileBackend(str(tmp_path / "journal")))

    def test_two_processes_do_not_repeat_a_configuration(self, journal, tmp_path):
        space = ConfigurationSpace({"a": [0, 1, 2, 3], "b": [0, 1, 2], "c": [0, 1]})
        study = create_study(space, n_initial=1, seed=3, storage=journal, study_name="shared")
        study.tell(ask(study), state=optuna.trial.TrialState.FAIL)
        names = [str(tmp_path / name) for name in "pq"]
        file = str(tmp_path / "journal")
        with started(WITHOUT_FITS, file, *names) as one, started(WITHOUT_FITS, file, *names[::-1]) as other:
            assert [one.wait(), other.wait()] == [0, 0], one.complaints + other.complaints
        assert len(study.trials) == 13 == len({tuple(trial.params.items()) for trial in study.trials})

    def test_only_one_thread_holds_the_lock(self, journal, plane):
        create_study(plane, seed=1, storage=journal, study_name="s")
        assert holders(journal) == [1] * 9

    def test_the_lock_is_released_after_an_error_and_waits_no_longer_than_a_search(
        self, journal, plane, tmp_path, monkeypatch
    ):
        study = create_study(plane, seed=1, storage=journal, study_name="s")
        with pytest.raises(ZeroDivisionError), search_lock(study):
            raise ZeroDivisionError
        monkeypatch.setattr(search_lock_room, "LONGEST_HOLD", 0.1)
        with search_lock(study):  # as a process that hangs
            started = time.monotonic()
            with search_lock(study):
                assert time.monotonic() - started >= 0.1
        assert (tmp_path / "journal.search-lock").exists()

    def test_a_storage_without_a_lock_is_named_once_at_the_first_suggestion(self, plane):
        class Elsewhere(BaseJournalBackend):
            def __init__(self) -> None:
                self.logs = []

            def read_logs(self, log_number_from):
                return iter(self.logs[log_number_from:])

            def append_logs(self, logs):
                self.logs.extend(logs)

        study = create_study(plane, n_initial=2, storage=JournalStorage(Elsewhere()), study_name="s")
        with pytest.warns(UserWarning, match="the storage JournalStorage of study 's' has no search lock.*twice"):
            ask(study)
        ask(study)
