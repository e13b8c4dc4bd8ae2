"""The demonstration's input: what a RECORD says, read as the packaging specification does."""

import hashlib
from pathlib import Path

import click
import pytest

from tidemill.cli.demo.records import installed_files, recorded

SHA = hashlib.sha256(b"hello").hexdigest()
CODE = "LPJNul-wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ"  # the same, as RECORD spells it


@pytest.fixture
def record(tmp_path):
    (tmp_path / "it-1.dist-info").mkdir()
    (tmp_path / "it").mkdir()
    for name in ("it/a,b.py", "it/c.pyc", "it/d.py", "it/e.py"):
        (tmp_path / name).write_bytes(b"hello")

    def write(*rows):
        path = tmp_path / "it-1.dist-info" / "RECORD"
        path.write_text("".join(f"{row}\n" for row in rows))
        return list(recorded(path))

    return write


def test_a_file_comes_with_its_whole_path_digest_and_size(record, tmp_path):
    (file,) = record(f'"it/a,b.py",sha256={CODE},5')
    assert file == (str(tmp_path / "it" / "a,b.py"), SHA, 5)


def test_what_has_no_hash_or_is_not_there_is_left_out(record):
    assert (
        record(
            "it-1.dist-info/RECORD,,",
            f"it/c.pyc,sha256={CODE},5",
            "it/d.py,,5",
            "it/d.py,md5=XUFAKrxLKna5cZ2REBfFkg,5",
            f"it/e.py,sha256={CODE},",
            f"it/gone.py,sha256={CODE},5",
        )
        == []
    )


def test_a_path_out_of_the_packages_is_resolved(record, tmp_path):
    (tmp_path.parent / "script").write_bytes(b"hello")
    (file,) = record(f"../script,sha256={CODE},5")
    assert file.path == str(tmp_path.parent / "script")


def test_this_environment_has_files_and_each_of_them_once():
    paths = [file.path for file in installed_files()]
    assert paths == sorted(set(paths))
    assert Path(click.__file__).resolve() in map(Path, paths)
    assert all(Path(path).is_file() for path in paths)
