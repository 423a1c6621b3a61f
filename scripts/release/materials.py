"""The bill of materials of a wheel, as CycloneDX: the crates in the engine, with licences and
hashes, and the Python packages that the wheel requires.
"""

from __future__ import annotations

import json
import re
import subprocess
import uuid
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import tomllib
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

# The crate that is built as the engine.
_ROOT = "dml-torch"


def write(source: Path, target: str, wheel: Path, when: int, file: Path) -> None:
    """Write to `file` the bill of materials of a wheel that was built from `source`.

    `target` is Rust's name of the platform, `when` the commit's time in seconds. The same arguments
    give the same bytes.
    """
    bom = Bom()
    # Derived from the wheel, so that it is the same in every run.
    bom.serial_number = uuid.uuid5(uuid.NAMESPACE_URL, wheel.name + str(when))
    bom.metadata.timestamp = datetime.fromtimestamp(when, tz=timezone.utc)
    version = wheel.name.split("-")[1]
    whole = Component(
        type=ComponentType.LIBRARY,
        name="torch-dml",
        version=version,
        bom_ref="torch-dml",
        purl=PackageURL("pypi", name="torch-dml", version=version, qualifiers={"file_name": wheel.name}),
    )
    bom.metadata.component = whole
    parts = _crates(source, target)
    packages = _python_packages(source)
    for component, _ in parts.values():
        bom.components.add(component)
    bom.components.update(packages)
    for component, needs in parts.values():
        bom.register_dependency(component, [parts[need][0] for need in needs])
    engine = next(component for component, _ in parts.values() if component.name == _ROOT)
    bom.register_dependency(whole, [engine, *packages])
    file.write_text(JsonV1Dot6(bom).output_as_string(indent=2) + "\n", encoding="utf-8", newline="\n")


def _crates(source: Path, target: str) -> dict[str, tuple[Component, list[str]]]:
    """Return the crates in the engine by cargo's ids, each with its dependencies."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target]
    found = json.loads(subprocess.run(command, cwd=source, check=True, capture_output=True, text=True).stdout)
    packages = {package["id"]: package for package in found["packages"]}
    nodes = {node["id"]: _needs(node) for node in found["resolve"]["nodes"]}
    lock = tomllib.loads((source / "Cargo.lock").read_text(encoding="utf-8"))
    sums = {(package["name"], package["version"]): package.get("checksum") for package in lock["package"]}
    left = [name for name, package in packages.items() if package["name"] == _ROOT]
    crates: dict[str, tuple[Component, list[str]]] = {}
    while left:
        name = left.pop()
        if name not in crates:
            package = packages[name]
            crates[name] = (_crate(package, sums[package["name"], package["version"]]), nodes[name])
            left += nodes[name]
    return crates


def _needs(node: dict[str, Any]) -> list[str]:
    """Return a crate's normal dependencies, without dev-dependencies and build-dependencies."""
    return [need["pkg"] for need in node["deps"] if any(kind["kind"] is None for kind in need["dep_kinds"])]


def _crate(package: dict[str, Any], checksum: str | None) -> Component:
    name, version = package["name"], package["version"]
    return Component(
        type=ComponentType.LIBRARY,
        name=name,
        version=version,
        bom_ref=f"{name}@{version}",
        # The workspace's crates are not published.
        purl=PackageURL("cargo", name=name, version=version) if package["source"] else None,
        licenses=[LicenseExpression(package["license"].replace("/", " OR "))] if package["license"] else [],
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=checksum)] if checksum else [],
    )


def _python_packages(source: Path) -> list[Component]:
    project = tomllib.loads((source / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = []
    for requirement in project["dependencies"]:
        name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
        component = Component(type=ComponentType.LIBRARY, name=name, bom_ref=name, purl=PackageURL("pypi", name=name))
        component.properties.add(Property(name="torch-dml:requirement", value=requirement))
        found.append(component)
    return found
