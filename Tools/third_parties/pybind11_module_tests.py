"""What a module made with pybind11 does must not depend on sampling."""

import threading

import pybind11_module as module
import pytest


def test_class():
    counter = module.Counter(start=5)
    for i in range(100_000):
        counter.add(i)
    assert counter.value == 5 + sum(range(100_000))


def test_callbacks():
    items = list(range(20_000))
    assert module.apply(lambda x: x + 1, items) == [x + 1 for x in items]


def test_exceptions():
    for i in range(5_000):
        with pytest.raises(IndexError, match=str(i)):
            module.fail(str(i))
        with pytest.raises(KeyError):
            module.apply({}.__getitem__, [i])


def test_threads_of_c_plus_plus():
    assert module.call_from_threads(lambda x: x, 8, 2_000) == (
        8 * sum(range(2_000)))


def test_with_and_without_the_gil():
    expected = module.burn(20_000_000)
    found = []
    threads = [threading.Thread(
        target=lambda: found.append(module.burn_without_gil(20_000_000)))
        for _ in range(4)]
    for thread in threads:
        thread.start()
    found.append(module.burn(20_000_000))
    for thread in threads:
        thread.join()
    assert found == [expected] * 5
