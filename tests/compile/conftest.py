"""Every test compiles anew."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    import torch._inductor.config as config

    torch._dynamo.reset()
    with config.patch(force_disable_caches=True, compile_threads=1):
        yield
    torch._dynamo.reset()
