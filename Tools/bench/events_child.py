"""Runs threads under subscriptions and tells what that cost.

    python events_child.py THREADS RATE_HZ SECONDS [SUBSCRIBER...]

A SUBSCRIBER is 'none' (batches are dropped), 'numbers' (adds up by numbers of
rows) or 'objects' (asks each sample for its stack and labels).  Prints one
JSON object.
"""

import json
import sys
import threading
import time

import profile_sampling


def drop(batch):
    pass


def numbers(batch):
    sums = numbers.sums
    for (node, *_), (_, _, wall_ns, *_), _ in batch.samples():
        sums[node] = sums.get(node, 0) + wall_ns


def objects(batch):
    sums = objects.sums
    for sample in batch:
        sums[sample.key] = sums.get(sample.key, 0) + sample.wall_ns
        if not sample.stack or sample.labels:
            sums[None] = sums.get(None, 0) + 1


CALLBACKS = {'none': drop, 'numbers': numbers, 'objects': objects}


def work(end, depth=20):
    if depth:
        return work(end, depth - 1)
    items = {}
    n = 0
    while time.perf_counter() < end:
        for i in range(50):
            items[i] = str(i) + str(n)
        n += 1
    return n


def main():
    n_threads, rate_hz, seconds = int(sys.argv[1]), int(sys.argv[2]), float(
        sys.argv[3])
    names = sys.argv[4:]
    for callback in CALLBACKS.values():
        callback.sums = {}
    subscriptions = []
    if not names:
        profile_sampling.start(rate_hz=rate_hz)
    for name in names:
        subscriptions.append(profile_sampling.subscribe(
            CALLBACKS[name], rate_hz=rate_hz, batch_samples=4096,
            batch_seconds=0.2))
    end = time.perf_counter() + seconds
    threads = [threading.Thread(target=work, args=(end,))
               for _ in range(n_threads)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for subscription in subscriptions:
        subscription.flush()
    core = profile_sampling.stats()
    result = {'seconds': time.perf_counter() - started, 'core': core,
              'subscriptions': [subscription.stats()
                                for subscription in subscriptions]}
    for subscription in subscriptions:
        subscription.close()
    if not names:
        profile_sampling.stop()
    json.dump(result, sys.stdout)


if __name__ == '__main__':
    main()
