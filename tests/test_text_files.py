from __future__ import annotations

import os
import resource
import signal
from pathlib import Path

import pytest

from slayr_py.errors import StorageError
from slayr_py.text_files import check_writable, create_text, write_text


@pytest.fixture
def full(monkeypatch):
    """A disk without room: files can be made, but nothing arrives in them."""

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, full):
    path = tmp_path / "search.json"
    path.write_text("old")
    with pytest.raises(StorageError, match=r"search\.json cannot be written: No space left on device; make room"):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_written_file_replaces_the_old_one_through_a_link(tmp_path):
    path = tmp_path / "page.html"
    write_text(path, "old")
    link = tmp_path / "latest.html"
    link.symlink_to(path)
    write_text(link, "neu ß")
    assert link.is_symlink() and path.read_text(encoding="utf-8") == "neu ß"


def test_a_device_is_written_in_place():
    write_text(Path(os.devnull), "text")
    assert Path(os.devnull).is_char_device()


def test_a_new_file_that_fails_is_removed_and_an_old_one_is_kept(tmp_path):
    path = tmp_path / "own.stan"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))  # as if the disk were full
    try:
        with pytest.raises(OSError, match="File too large"):
            create_text(path, "x" * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert not path.exists()
    path.write_text("old")
    with pytest.raises(FileExistsError):
        create_text(path, "new")
    assert path.read_text() == "old"


def test_a_folder_is_made_and_checked(tmp_path):
    check_writable(tmp_path / "a" / "b")
    assert list((tmp_path / "a" / "b").iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="nothing can be written to"):
        check_writable(tmp_path / "file")
