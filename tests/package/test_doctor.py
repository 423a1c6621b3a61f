"""`doctor` on Windows' drivers, several devices and a package without an engine, with simulated
answers of such machines.
"""

from __future__ import annotations

import datetime
import json
import sys
import types
from importlib import metadata
from pathlib import Path

import pytest
from torch_dml import vulkan, windows_drivers
from torch_dml.cli import doctor

TODAY = datetime.date(2026, 11, 22)
RADEON = {
    "DriverDesc": "AMD Radeon RX 6600",
    "DriverVersion": "31.0.24033.1003",
    "DriverDate": "3-15-2024",
    "ProviderName": "Advanced Micro Devices, Inc.",
    "MatchingDeviceId": r"PCI\VEN_1002&DEV_73FF",
}
IRIS = {
    "DriverDesc": "Intel(R) Iris(R) Xe Graphics",
    "DriverVersion": "32.0.101.8132",
    "DriverDate": "9-1-2026",
    "ProviderName": "Intel Corporation",
    "MatchingDeviceId": r"PCI\VEN_8086&DEV_9A49",
}
BASIC = {
    "DriverDesc": "Microsoft Basic Display Adapter",
    "DriverVersion": "10.0.26100.1",
    "DriverDate": "6-21-2006",
    "ProviderName": "Microsoft",
    "MatchingDeviceId": r"PCI\CC_0300",
}


def test_an_old_driver_is_named_with_its_vendors_page():
    driver = windows_drivers.Driver.of(RADEON)
    assert driver.description() == "AMD Radeon RX 6600: driver 31.0.24033.1003 of 2024-03-15"
    complaint = driver.complaint(TODAY)
    assert complaint is not None and "2.7 years old" in complaint and "https://www.amd.com/support" in complaint
    assert windows_drivers.Driver.of(IRIS).complaint(TODAY) is None


def test_windows_own_driver_is_none_of_a_gpu():
    complaint = windows_drivers.Driver.of(BASIC).complaint(TODAY)
    assert complaint == "Windows' own driver, which has no Vulkan"


@pytest.mark.parametrize("date", ["", "yesterday", "13-40-2024", "3-15"])
def test_a_date_that_makes_no_sense_is_left_out(date: str):
    driver = windows_drivers.Driver.of({**RADEON, "DriverDate": date})
    assert driver.description() == "AMD Radeon RX 6600: driver 31.0.24033.1003"
    assert driver.complaint(TODAY) is None
    assert windows_drivers.Driver.of({}).complaint(TODAY) is None


class _Key:
    def __init__(self, keys: dict[str, object], values: dict[str, object]):
        self.keys, self.values = keys, values

    def __enter__(self) -> _Key:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def test_the_registry_is_read(monkeypatch: pytest.MonkeyPatch):
    keys = {
        "0000": _Key({}, dict(RADEON)),
        "0001": _Key({}, {**IRIS, "InfSection": "iTGLD", "FeatureScore": 7}),
        "0002": _Key({}, {}),
        "Properties": None,
    }
    registry = types.SimpleNamespace(
        HKEY_LOCAL_MACHINE=_Key({}, {}),
        OpenKey=lambda key, name: _Key(keys, {}) if "{4d36e968" in name else key.keys[name],
        QueryInfoKey=lambda key: (len(key.keys), len(key.values), 0),
        EnumKey=lambda key, index: list(key.keys)[index],
        EnumValue=lambda key, index: (*list(key.values.items())[index], 1),
    )
    monkeypatch.setitem(sys.modules, "winreg", registry)
    monkeypatch.setattr(sys, "platform", "win32")
    found = windows_drivers.installed()
    assert [driver.vendor for driver in found] == ["AMD", "Intel"]
    assert found[1].version == "32.0.101.8132"


def test_elsewhere_there_are_none():
    assert sys.platform == "win32" or windows_drivers.installed() == []


def test_doctor_complains(capsys: pytest.CaptureFixture[str]):
    report = doctor._Report()
    drivers = [windows_drivers.Driver.of(values) for values in (RADEON, BASIC)]
    doctor._check_windows_drivers(report, drivers)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("warn  driver") and "AMD Radeon RX 6600" in lines[0]
    assert "years old" in lines[1]
    assert "no Vulkan" in lines[3]
    assert not report.failed


def test_of_several_devices_the_first_is_the_choice(capsys: pytest.CaptureFixture[str]):
    devices = [
        {"index": 0, "name": "GeForce", "kind": "discrete", "driver": "NVIDIA"},
        {"index": 1, "name": "Iris", "kind": "integrated", "driver": "Intel Corporation"},
    ]
    doctor._say_what_is_known(doctor._Report(), devices)
    text = capsys.readouterr().out
    assert '"dml" is dml:0, GeForce (discrete); also there: dml:1 (Iris)' in text
    assert "have not been run with the driver Intel Corporation" in text
    assert 'another: device="dml:1", or torch.dml.set_device(1)' in text and "VK_DRIVER_FILES" in text


def test_of_one_device_there_is_no_choice(capsys: pytest.CaptureFixture[str]):
    doctor._say_what_is_known(doctor._Report(), [{"index": 0, "name": "Iris", "kind": "integrated", "driver": "Intel"}])
    assert "choice" not in capsys.readouterr().out


WHEEL = {"url": "file:///C:/Users/a/torch_dml-0.1.0-py3-none-win_amd64.whl", "archive_info": {}}
SOURCES = {"url": "file:///home/a/torch-dml", "dir_info": {}}
EDITABLE = {"url": "file:///home/a/torch-dml", "dir_info": {"editable": True}}


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, "pip install --force-reinstall --no-deps torch_dml-0.1.0-py3-none-PLATFORM.whl"),
        (WHEEL, "pip install --force-reinstall --no-deps torch_dml-0.1.0-py3-none-PLATFORM.whl"),
        (SOURCES, "pip install --force-reinstall --no-deps ."),
        (EDITABLE, "pip install -e . --no-build-isolation"),
    ],
)
def test_a_package_without_an_engine_is_reinstalled_as_it_was_installed(
    origin: dict[str, object] | None, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "METADATA").write_text("Metadata-Version: 2.4\nName: torch-dml\nVersion: 0.1.0\n")
    if origin is not None:
        (tmp_path / "direct_url.json").write_text(json.dumps(origin))
    monkeypatch.setattr(metadata, "distribution", lambda _: metadata.PathDistribution(tmp_path))
    monkeypatch.setattr(doctor, "probe", lambda _: {"ok": False, "error": "no library"})
    report = doctor._Report()
    assert not doctor._check_engine(report)
    (hint,) = report.hints
    assert f"`{command}`" in hint
    assert ("file:///home/a/torch-dml" in hint) == (origin in (SOURCES, EDITABLE))


def test_a_package_that_is_not_installed_is_built(monkeypatch: pytest.MonkeyPatch):
    def missing(name: str) -> metadata.Distribution:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", missing)
    assert "cargo xtask build" in doctor._how_to_reinstall()


def test_the_advice_has_every_vendors_page():
    advice = "\n".join(vulkan.advice("windows"))
    assert all(page in advice for page in windows_drivers.PAGES.values())
