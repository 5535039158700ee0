"""Writes a large JSON file for the demo: the records of a made-up shop.

    python Tools/demo/make_json.py FILE

The same bytes each time, so that two demos do the same work.
"""

import json
import random
import sys

RECORDS = 60_000
WORDS = ('alder', 'birch', 'cedar', 'elm', 'hazel', 'juniper', 'larch',
         'maple', 'oak', 'pine', 'rowan', 'willow')


def record(rng, number):
    return {
        'id': number,
        'name': ' '.join(rng.choices(WORDS, k=3)),
        'price': round(rng.uniform(1, 1000), 2),
        'in stock': rng.random() < 0.8,
        'tags': rng.sample(WORDS, 4),
        'supplier': {'city': rng.choice(WORDS).title(), 'rating': None,
                     'position': [rng.uniform(-90, 90),
                                  rng.uniform(-180, 180)]},
        'sold per month': [rng.randrange(500) for _ in range(12)],
    }


def main():
    rng = random.Random(1)
    with open(sys.argv[1], 'w') as file:
        json.dump([record(rng, i) for i in range(RECORDS)], file)


if __name__ == '__main__':
    main()
