"""`--parallel auto`, on simulated machines."""

from __future__ import annotations

import pytest
from dml_robot.errors import DeviceError
from dml_robot.learn import parallel
from dml_robot.learn.parallel import Measured, best

MIB = 2**20


def choose(speed, memory=lambda arms: arms * MIB, *, limit=10**6 * MIB, most=4096) -> tuple[int, list[int]]:
    tried = []

    def measure(arms: int) -> Measured:
        tried.append(arms)
        return Measured(arms, speed(arms), memory(arms))

    return best(measure, 16, most, limit, lambda line: None), tried


def test_it_stops_where_more_arms_are_no_faster():
    chosen, tried = choose(lambda arms: min(arms, 200))
    assert chosen == 256 and tried == [16, 32, 64, 128, 256, 512]


def test_it_stops_at_the_most():
    assert choose(lambda arms: arms)[0] == 4096


def test_it_never_tries_what_does_not_fit():
    chosen, tried = choose(lambda arms: arms, lambda arms: 1000 * MIB + arms * MIB, limit=1300 * MIB)
    assert chosen == 256 and max(tried) == 256


def test_too_little_memory_after_all_is_no_error():
    def speed(arms: int) -> float:
        if arms > 64:
            raise DeviceError("too little memory")
        return arms

    assert choose(speed)[0] == 64


def test_it_takes_no_longer_than_it_may(monkeypatch: pytest.MonkeyPatch):
    now = iter(range(0, 1000, 15))
    monkeypatch.setattr(parallel.time, "monotonic", lambda: next(now))
    assert len(choose(lambda arms: arms)[1]) == 2
