"""The GPU drivers that are installed on Windows: versions and dates, from the registry. Empty on
other systems.
"""

from __future__ import annotations

import contextlib
import datetime
import re
import sys
from dataclasses import dataclass

# The class of display adapters: one numbered key for each adapter that ever had a driver.
_CLASS = r"SYSTEM\CurrentControlSet\Control\Class\{4d36e968-e325-11ce-bfc1-08002be10318}"
# An older driver lacks fixes that its vendor has made since.
_OLD_DAYS = 2 * 365

PAGES = {
    "AMD": "https://www.amd.com/support",
    "Intel": "https://www.intel.com/content/www/us/en/download-center/home.html",
    "NVIDIA": "https://www.nvidia.com/drivers",
    "Qualcomm": "Windows Update, or the maker of the computer",
}
_VENDORS = {0x1002: "AMD", 0x1022: "AMD", 0x8086: "Intel", 0x10DE: "NVIDIA", 0x5143: "Qualcomm", 0x4D4F: "Qualcomm"}


@dataclass(frozen=True)
class Driver:
    """The driver of one display adapter."""

    name: str
    version: str
    date: datetime.date | None
    provider: str
    vendor: str | None

    @classmethod
    def of(cls, values: dict[str, str]) -> Driver:
        """Create it from the registry's values of an adapter."""
        found = re.search(r"ven_([0-9a-f]{4})", values.get("MatchingDeviceId", ""), re.IGNORECASE)
        return cls(
            name=values.get("DriverDesc", "an adapter without a name"),
            version=values.get("DriverVersion", "of unknown version"),
            date=_date(values.get("DriverDate", "")),
            provider=values.get("ProviderName", ""),
            vendor=_VENDORS.get(int(found[1], 16)) if found else None,
        )

    def description(self) -> str:
        """Return one line: name, version, date."""
        return f"{self.name}: driver {self.version}" + (f" of {self.date.isoformat()}" if self.date else "")

    def complaint(self, today: datetime.date) -> str | None:
        """Return what is wrong with the driver and where to get a better one, None if it is
        fine.
        """
        where = PAGES.get(self.vendor or "")
        get = f"; get the vendor's: {where}" if where else ""
        if self.provider == "Microsoft" and "basic" in self.name.lower():
            return "Windows' own driver, which has no Vulkan" + get
        age = (today - self.date).days if self.date else 0
        return f"it is {age / 365:.1f} years old{get}" if age > _OLD_DAYS else None


def installed() -> list[Driver]:
    """Return the drivers of the display adapters; none if this is not Windows, or if its registry
    cannot be read.
    """
    if sys.platform != "win32":
        return []
    import winreg

    found = []
    with contextlib.suppress(OSError), winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, _CLASS) as adapters:
        for index in range(winreg.QueryInfoKey(adapters)[0]):
            name = winreg.EnumKey(adapters, index)
            # Besides the numbered keys there is one that only administrators may open.
            if not name.isdigit():
                continue
            with winreg.OpenKey(adapters, name) as adapter:
                count = winreg.QueryInfoKey(adapter)[1]
                values = [winreg.EnumValue(adapter, i)[:2] for i in range(count)]
            texts = {key: value for key, value in values if isinstance(value, str)}
            if "DriverVersion" in texts:
                found.append(Driver.of(texts))
    return found


def _date(text: str) -> datetime.date | None:
    """Parse the registry's month-day-year."""
    try:
        month, day, year = map(int, text.split("-"))
        return datetime.date(year, month, day)
    except ValueError:
        return None
