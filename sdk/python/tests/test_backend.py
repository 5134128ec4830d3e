"""The wheel and the source distribution: complete, and importable in an empty folder."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile
from importlib import util
from pathlib import Path
from typing import Any

import posthorn

ROOT = Path(__file__).parents[1]


def load_backend() -> Any:
    spec = util.spec_from_file_location("backend", ROOT / "backend.py")
    assert spec is not None and spec.loader is not None
    backend = util.module_from_spec(spec)
    spec.loader.exec_module(backend)
    return backend


class BackendTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_a_program_in_an_empty_folder_imports_the_wheel(self) -> None:
        wheel = self.folder / load_backend().build_wheel(str(self.folder))
        program = f"import sys; sys.path.insert(0, {str(wheel)!r}); import posthorn, posthorn.types; print(posthorn.__version__)"
        printed = subprocess.run(
            [sys.executable, "-I", "-c", program], cwd=self.folder, capture_output=True, text=True, check=True
        )
        self.assertEqual(printed.stdout.strip(), posthorn.__version__)

    def test_the_wheel_has_every_module_and_the_digest_of_each_file(self) -> None:
        backend = load_backend()
        wheel = self.folder / backend.build_wheel(str(self.folder))
        first = wheel.read_bytes()
        backend.build_wheel(str(self.folder))
        self.assertEqual(wheel.read_bytes(), first)
        with zipfile.ZipFile(wheel) as archive:
            files = {name: archive.read(name) for name in archive.namelist()}
        sources = ROOT / "src"
        modules = {path.relative_to(sources).as_posix() for path in sources.rglob("*.py")}
        self.assertLessEqual(modules | {"posthorn/py.typed"}, files.keys())
        record = next(content for name, content in files.items() if name.endswith(".dist-info/RECORD")).decode()
        listed = {}
        for line in record.splitlines():
            name, digest, size = line.rsplit(",", 2)
            listed[name] = (digest, size)
        self.assertEqual(listed.keys(), files.keys())
        for name, (digest, size) in listed.items():
            if not name.endswith("/RECORD"):
                wanted = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).rstrip(b"=").decode()
                self.assertEqual((digest, size), (f"sha256={wanted}", str(len(files[name]))))

    def test_the_source_distribution_builds_the_same_wheel(self) -> None:
        backend = load_backend()
        wheel = backend.build_wheel(str(self.folder))
        with tarfile.open(self.folder / backend.build_sdist(str(self.folder))) as archive:
            archive.extractall(self.folder)
        base = next(path for path in self.folder.iterdir() if path.is_dir())
        subprocess.run(
            [sys.executable, "-c", "import backend; backend.build_wheel('.')"], cwd=base, capture_output=True, check=True
        )
        self.assertEqual((base / wheel).read_bytes(), (self.folder / wheel).read_bytes())


if __name__ == "__main__":
    unittest.main()
