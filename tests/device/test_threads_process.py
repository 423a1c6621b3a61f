"""Threads at the beginning and the end of a device's life: its first use, and its loss."""

from __future__ import annotations

from tests.support.processes import run_python

HEAD = """
import faulthandler, threading, time, torch, torch_dml
faulthandler.dump_traceback_later(100, exit=True)

def in_threads(work, count=8):
    start = threading.Barrier(count)
    def run(index):
        start.wait()
        work(index)
    threads = [threading.Thread(target=run, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    return threads
"""


def run(body: str) -> str:
    result = run_python("-X", "faulthandler", "-c", HEAD + body, timeout=120)
    assert result.returncode == 0 and "Traceback" not in result.stderr, (result.returncode, result.stderr)
    return result.stdout


def test_the_first_use_of_two_devices_by_eight_threads():
    """Devices are opened, seeded and profiled once, and kernels are built once."""
    out = run("""
torch.manual_seed(7)
results = [None] * 8
def work(index):
    x = torch.arange(1000.0, device=f"dml:{index % 2}", requires_grad=True)
    (x * x).sum().backward()
    results[index] = x.grad.sum().item(), torch.rand(3, device=x.device).tolist()
for thread in in_threads(work):
    thread.join()
assert {total for total, _ in results} == {999000.0}
# Each device's numbers are of one stream from one seed, whoever drew which.
drawn = [sorted(numbers for _, numbers in results[device::2]) for device in range(2)]
assert drawn[0] == drawn[1] and all(a != b for a, b in zip(drawn[0], drawn[0][1:]))
torch.manual_seed(7)
assert sorted(torch.rand(3, device="dml").tolist() for _ in range(4)) == drawn[0]
print("done")
""")
    assert out == "done\n"


def test_a_loss_while_eight_threads_work_on_two_devices():
    """Every thread of the lost device gets the error; the others are not affected."""
    out = run("""
from torch_dml import engine
lost, good, over, at_work = [], [], threading.Event(), threading.Barrier(9)
def work(index):
    device = f"dml:{index % 2}"
    count, x = 0, torch.zeros(1000, device=device)
    torch.dml.synchronize(device)
    at_work.wait()
    try:
        while not over.is_set():
            for _ in range(50):
                x = x + 1
                count += 1
            if index % 4 < 2:
                assert x[7].item() == count
            else:
                torch.dml.synchronize(device)
    except torch.AcceleratorError as error:
        assert "dml:0" in str(error) and "was lost" in str(error)
        lost.append(index)
        return
    assert x.eq(count).all().item()
    good.append(index)
threads = in_threads(work)
at_work.wait()
time.sleep(0.3)
engine.call("dml_simulate_loss", 0)
for thread in threads[::2]:
    thread.join()
time.sleep(0.2)
over.set()
for thread in threads[1::2]:
    thread.join()
print(sorted(lost), sorted(good))
""")
    assert out == "[0, 2, 4, 6] [1, 3, 5, 7]\n"
