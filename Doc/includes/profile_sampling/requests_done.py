"""Serve so many requests, and count them in the profile.

    ./python requests_done.py 300 before.pb.gz
"""

import json
import sys

import profile_sampling

ROWS = [{'id': number, 'price': number / 7} for number in range(2_000)]


def serve(route):
    with profile_sampling.label(route=route):
        text = json.dumps(ROWS)
        if route == '/sum':
            sum(row['price'] for row in json.loads(text))
        profile_sampling.sample(event='request')


requests, path = int(sys.argv[1]), sys.argv[2]
with profile_sampling.profile() as session:
    for number in range(requests):
        serve('/sum' if number % 2 else '/list')
session.profile.save(path)
