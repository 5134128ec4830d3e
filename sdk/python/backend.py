"""Builds the wheel and the source distribution (PEP 517) with the standard library alone."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import re
import tarfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent
SOURCES = ROOT / "src"
# Always the same bytes from the same sources.
TIME = (1980, 1, 1, 0, 0, 0)


def build_wheel(
    wheel_directory: str, config_settings: object = None, metadata_directory: str | None = None
) -> str:
    """Writes the wheel, and returns its name. Raises FileNotFoundError if the generated modules are missing."""
    name, version, metadata = _describe()
    about = f"{name}-{version}.dist-info"
    files = {path.relative_to(SOURCES).as_posix(): path.read_bytes() for path in _modules()}
    files[f"{about}/METADATA"] = metadata
    files[f"{about}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: posthorn\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{about}/licenses/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    record = [f"{path},sha256={_digest(content)},{len(content)}" for path, content in files.items()]
    files[f"{about}/RECORD"] = "\n".join([*record, f"{about}/RECORD,,", ""]).encode()
    wheel = f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(Path(wheel_directory) / wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            entry = zipfile.ZipInfo(path, TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, content)
    return wheel


def build_sdist(sdist_directory: str, config_settings: object = None) -> str:
    """Writes the source distribution, with the generated modules, and returns its name."""
    name, version, metadata = _describe()
    base = f"{name}-{version}"
    fixed = [ROOT / one for one in ("LICENSE", "README.md", "backend.py", "pyproject.toml")]
    files = {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in [*fixed, *_modules()]}
    files["PKG-INFO"] = metadata
    with (
        open(Path(sdist_directory) / f"{base}.tar.gz", "wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path, content in files.items():
            entry = tarfile.TarInfo(f"{base}/{path}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return f"{base}.tar.gz"


def _describe() -> tuple[str, str, bytes]:
    """Returns name, version and metadata."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    version = re.search(r'VERSION = "(.+)"', (SOURCES / "posthorn/_version.py").read_text("utf-8"))
    if version is None:
        raise ValueError("_version.py has no version")
    fields = [
        "Metadata-Version: 2.1",
        f"Name: {project['name']}",
        f"Version: {version[1]}",
        f"Summary: {project['description']}",
        f"License: {project['license']['text']}",
        "Classifier: Typing :: Typed",
        f"Requires-Python: {project['requires-python']}",
        "Description-Content-Type: text/markdown",
    ]
    readme = (ROOT / project["readme"]).read_text("utf-8")
    return project["name"], version[1], "\n".join([*fields, "", readme]).encode()


def _modules() -> list[Path]:
    for generated in ("types.py", "_async/operations.py", "_sync/client.py"):
        if not (SOURCES / "posthorn" / generated).exists():
            raise FileNotFoundError(f"{generated} is missing: run `node scripts/api-types.ts` first")
    return sorted(path for path in SOURCES.rglob("*") if path.suffix in (".py", ".typed"))


def _digest(content: bytes) -> str:
    # The database of installed files writes digests without padding.
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
